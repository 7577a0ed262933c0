// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"archive/zip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// torchPickle is the pickle of a state_dict of one tensor "w".
func torchPickle(storage, elements, offset, shape, strides string) string {
	return "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + storage + "\n" +
		"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + elements + "tQ" + offset + shape + strides + "\x89}tRs."
}

func TestHostileTorch(t *testing.T) {
	t.Parallel()
	const k1, k2, k4 = "K\x01", "K\x02", "K\x04"
	const huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"
	file := func(pickle string, data int) fstest.MapFS {
		return one("m.pt", zipOf(t, zip.Store, "m/data.pkl", pickle, "m/version", "3\n", "m/data/0", strings.Repeat("x", data)))
	}
	program := func(json string) fstest.MapFS {
		return one("m.pt2", zipOf(t, zip.Store, "m/archive_format", "pt2", "m/models/model.json", json))
	}
	tensor := `{"graph_module":{"graph":{"tensor_values":{"x":{"dtype":7,"sizes":[%]}}},"signature":{"input_specs":[{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}]}}}`
	refuse(t, []hostile{
		{name: "no data", files: one("m.pt", zipOf(t, zip.Store, "m/data.pkl", torchPickle("FloatStorage", k4, "K\x00", k4+"\x85", k1+"\x85"))), want: "m/data/0, is not in the archive"},
		{name: "short data", files: file(torchPickle("FloatStorage", k4, "K\x00", k4+"\x85", k1+"\x85"), 8), want: "but 8 bytes are stored"},
		{name: "outside", files: file(torchPickle("FloatStorage", k2, "K\x00", k4+"\x85", k1+"\x85"), 8), want: "outside of its storage of 2"},
		{name: "offset", files: file(torchPickle("FloatStorage", k2, k1, k2+"\x85", k1+"\x85"), 8), want: "outside of its storage of 2"},
		{name: "stride", files: file(torchPickle("FloatStorage", k4, "K\x00", k2+"\x85", huge+"\x85"), 16), want: "outside"},
		{name: "negative stride", files: file(torchPickle("FloatStorage", k4, "K\x00", k2+"\x85", "J\xff\xff\xff\xff\x85"), 16), want: "stride -1"},
		{name: "strides", files: file(torchPickle("FloatStorage", k4, "K\x00", k2+"\x85", ")"), 16), want: "not as many strides"},
		{name: "negative dimension", files: file(torchPickle("FloatStorage", k4, "K\x00", "J\xff\xff\xff\xff\x85", k1+"\x85"), 16), want: "a dimension is -1"},
		{name: "overflow", files: file(torchPickle("FloatStorage", k4, "K\x00", huge+huge+"\x86", "K\x00K\x00\x86"), 16), want: "63 bits"},
		{name: "huge storage", files: file(torchPickle("FloatStorage", huge, "K\x00", k4+"\x85", k1+"\x85"), 16), want: "but 16 bytes are stored"},
		{name: "storage", files: file(torchPickle("OddStorage", k4, "K\x00", k4+"\x85", k1+"\x85"), 16), want: "unknown storage"},
		{name: "no storage", files: file("\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x02K\x03K\x04tRs.", 16), want: "no storage"},
		{name: "too few", files: file("\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n)Rs.", 16), want: "rebuilt from something else"},
		{name: "no module", files: one("m.pt", zipOf(t, zip.Store, "m/data.pkl", "\x80\x02N.", "m/constants.pkl", "\x80\x02).")), want: "no module"},
		{name: "no program", files: one("m.pt2", zipOf(t, zip.Store, "m/archive_format", "pt2")), want: "no models/NAME.json"},
		{name: "program", files: program("[[["), want: "model.json"},
		{name: "negative size", files: program(strings.Replace(tensor, "%", `{"as_int":-2}`, 1)), want: "dimension 0 is -2"},
		{name: "size", files: program(strings.Replace(tensor, "%", `{}`, 1)), want: "neither a number nor an expression"},
		{name: "missing weight", files: one("m.pt2", zipOf(t, zip.Store, "m/archive_format", "pt2", "m/models/model.json", "{}", "m/data/weights/model_weights_config.json",
			`{"config":{"w":{"path_name":"../x","tensor_meta":{"dtype":7,"sizes":[]}}}}`)), want: "which the archive does not have"},
		{name: "legacy", files: one("m.pt", []byte(torchMagic+".\x80\x02N.")), want: "m.pt"},
	})
}

func TestTorchCodeIsReadNotRun(t *testing.T) {
	t.Parallel()
	code := "class Other(Module):\n  def forward(self: x, no: int) -> int:\n    pass\nclass Net(Module):\n  def forward(self: __torch__.Net,\n    x: Tensor,\n" +
		"    pairs: List[Tuple[Tensor, int]]=[],\n    n: Optional[int]=None) -> Tuple[Tensor, Dict[str, Tensor]]:\n    return x\n"
	pickle := "\x80\x02c__torch__\nNet\n)\x81}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00id\x85Rsb."
	files := one("m.pt", zipOf(t, zip.Deflate, "m/data.pkl", pickle, "m/constants.pkl", "\x80\x02).", "m/code/__torch__.py", code))
	sig, err := Read(t.Context(), files, "m.pt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tensor := range slices.Concat(sig.Inputs, sig.Outputs) {
		got = append(got, tensor.Name+":"+tensor.Type)
	}
	want := []string{"x:", "pairs:List[Tuple[Tensor, int]]", "n:Optional[int]", "output_0:", "output_1:Dict[str, Tensor]"}
	if !slices.Equal(got, want) || !slices.Equal(sig.Unsafe, []string{"os.system"}) || sig.Format != TorchScript {
		t.Errorf("it was read as %s", describe(t, sig))
	}
}

func FuzzTorch(f *testing.F)       { fuzzFormat(f, TorchPickle, "m.pt", "*.pt", "*.pth") }
func FuzzTorchScript(f *testing.F) { fuzzFormat(f, TorchScript, "m.pt", "script.pt") }
func FuzzTorchExport(f *testing.F) { fuzzFormat(f, TorchExport, "m.pt2", "*.pt2") }

func FuzzTorchData(f *testing.F)  { fuzzMember(f, TorchPickle, "state.pt", "state/data.pkl") }
func FuzzScriptData(f *testing.F) { fuzzMember(f, TorchScript, "script.pt", "whole/data.pkl") }
func FuzzExportModel(f *testing.F) {
	fuzzMember(f, TorchExport, "export.pt2", "export/models/model.json")
}
func FuzzScriptCode(f *testing.F) {
	fuzzMember(f, TorchScript, "script.pt", "whole/code/__torch__/torch/nn/modules/container.py")
}
