// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const mlmodelFile = `artifact_path: model
flavors:
  python_function:
    loader_module: mlflow.sklearn
    model_path: model.pkl
  sklearn:
    pickled_model: %s
    sklearn_version: 1.9.1
mlflow_version: 3.17.0
run_id: abc
signature:
  inputs: '[{"type": "double", "name": "a", "required": true}, {"type": "tensor", "tensor-spec": {"dtype": "float32", "shape": [-1, 28]}}]'
  outputs: '[{"type": "long", "name": "y"}]'
`

func TestMLflow(t *testing.T) {
	t.Parallel()
	pickle, err := os.ReadFile("testdata/pipeline-5.pkl")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"m/MLmodel": {Data: fmt.Appendf(nil, mlmodelFile, "model.pkl")}, "m/model.pkl": {Data: pickle}, "m/conda.yaml": {Data: []byte("x")}}
	for _, name := range []string{"m", "m/MLmodel"} {
		sig, err := Read(t.Context(), files, name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(fmt.Sprintln(sig.Inputs, sig.Outputs, sig.Flavors, sig.Callables, sig.Producer))
		if want := "[{a float64 [-1] []} { float32 [-1 28] []}] [{y int64 [-1] []}] [python_function sklearn] [mlflow.sklearn] mlflow 3.17.0"; text != want {
			t.Errorf("it was read as %s, want %s", text, want)
		}
		if sig.Contained == nil || sig.Contained.Format != Sklearn || *sig.Parameters != 15 {
			t.Errorf("what it contains was read as %s", describe(t, sig))
		}
		if name == "m" && (len(sig.Files) != 3 || sig.Size <= int64(len(pickle))) {
			t.Errorf("its files are %v", sig.Files)
		}
	}
}

func TestHostileMLflow(t *testing.T) {
	t.Parallel()
	file := func(text string) fstest.MapFS { return one("MLmodel", []byte(text)) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	bomb += "flavors: {x: {y: *j}}\n"
	folder := func(model string) fstest.MapFS {
		return fstest.MapFS{"m/MLmodel": {Data: fmt.Appendf(nil, mlmodelFile, model)}, "secret.pkl": {Data: []byte("\x80\x04N.")}, "m2/x.pkl": {Data: []byte("\x80\x04N.")}}
	}
	refuse(t, []hostile{
		{name: "aliases", files: file(bomb), want: "aliasing"},
		{name: "nesting", files: file(strings.Repeat("[", 100_000)), want: "MLmodel"},
		{name: "no flavors", files: file("run_id: 1"), want: "no flavors"},
		{name: "no YAML", files: file("\x00"), want: "MLmodel"},
		{name: "long", files: file(strings.Repeat("#", 5<<20)), want: "are the most"},
		{name: "schema", files: file("flavors: {a: {}}\nsignature: {inputs: '[{'}"), want: `member "signature.inputs"`},
		{name: "schema is no list", files: file("flavors: {a: {}}\nsignature: {inputs: '{}'}"), want: "no list"},
		{name: "no shape", files: file("flavors: {a: {}}\nsignature: {inputs: '[{\"type\":\"tensor\"}]'}"), want: "no shape"},
		{name: "climbs out", read: "m", files: folder("../secret.pkl"), want: "leads out"},
		{name: "climbs into a neighbour", read: "m", files: folder("../m2/x.pkl"), want: "leads out"},
		{name: "climbs out of the root", read: "m", files: folder("../../secret.pkl"), want: "leads out"},
		{name: "itself", read: "m", files: folder("."), want: "another folder of MLflow"},
		{name: "its own file", read: "m", files: folder("MLmodel"), want: "another folder of MLflow"},
	})
}

func TestTensorRT(t *testing.T) {
	t.Parallel()
	plan := append([]byte("ftrt\x00\x00\x00\x00\xef\x00\x00\x00"), make([]byte, 100)...)
	copy(plan[24:], []byte{10, 3, 0, 26})
	wrapped := append(little.AppendUint32(nil, 14), `{"task":"seg"}`...)
	for name, data := range map[string][]byte{"m.plan": plan, "m.engine": append(wrapped, plan...)} {
		sig, err := Read(t.Context(), one(name, data), name, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sig.Producer != "tensorrt 10.3.0.26" || len(sig.Notes) != 1 || name == "m.engine" && sig.Metadata["task"] != "seg" {
			t.Errorf("%s was read as %s", name, describe(t, sig))
		}
	}
	refuse(t, []hostile{
		{name: "short", files: one("m.plan", plan[:20]), want: "middle of a value"},
		{name: "other", files: one("m.plan", make([]byte, 100)), want: "no plan of TensorRT"},
		{name: "metadata", files: one("m.engine", []byte("\xff\xff\xff\x7f{")), want: "more than the file"},
	})
}

func TestDetect(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	detected := map[Format]bool{}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") || strings.HasSuffix(entry.Name(), ".py") || strings.HasPrefix(entry.Name(), "requirements") || entry.Name() == "fuzz" {
			continue
		}
		format, err := Detect(t.Context(), os.DirFS("testdata"), entry.Name(), Limits{})
		if err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
		detected[format] = true
	}
	for _, format := range []Format{Safetensors, GGUF, ONNX, XGBoost, LightGBM, CatBoost, Sklearn, SavedModel, GraphDef, Keras, KerasH5, TorchScript, TorchExport, TorchPickle, PMML} {
		if !detected[format] {
			t.Errorf("no file of testdata is %s: %v", format, slices.Collect(func(yield func(Format) bool) {
				for f := range detected {
					if !yield(f) {
						return
					}
				}
			}))
		}
	}
}

func FuzzMLflow(f *testing.F) {
	f.Add(fmt.Appendf(nil, mlmodelFile, "model.pkl"))
	fuzzFormat(f, MLflow, "MLmodel")
}

func FuzzTensorRT(f *testing.F) {
	f.Add(append([]byte("ftrt"), make([]byte, 100)...))
	fuzzFormat(f, TensorRT, "m.plan")
}
