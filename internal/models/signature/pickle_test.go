// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPicklesAreNotExecuted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pickle, unsafe string }{
		"reduce":            {"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.", "os.system"},
		"protocol 0":        {"cposix\nsystem\n(S'id'\ntR.", "posix.system"},
		"stack global":      {"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "os.system"},
		"inst":              {"(S'id'\nios\nsystem\n.", "os.system"},
		"obj":               {"\x80\x02(cos\nsystem\nU\x02ido.", "os.system"},
		"eval":              {"\x80\x02cbuiltins\neval\nU\x011\x85R.", "builtins.eval"},
		"attribute":         {"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.", "builtins.getattr"},
		"dotted":            {"\x80\x04\x8c\x05numpy\x8c\x11testing.runstring\x93.", "numpy.testing.runstring"},
		"submodule":         {"\x80\x02casyncio.unix_events\n_UnixSubprocessTransport._start\n.", "asyncio.unix_events._UnixSubprocessTransport._start"},
		"hub":               {"\x80\x02ctorch.hub\nload\n.", "torch.hub.load"},
		"new object":        {"\x80\x02csubprocess\nPopen\nU\x02id\x85\x81.", "subprocess.Popen"},
		"new object by key": {"\x80\x04csubprocess\nPopen\n)}\x92.", "subprocess.Popen"},
		"computed":          {"\x80\x02cx\ny\n)R)R.", "a callable that is computed"},
		"computed name":     {"\x80\x04K\x01K\x02\x93.", "a name that is computed"},
		"popped":            {"\x80\x02cos\nsystem\nU\x02id\x85R0N.", "os.system"},
		"in the memo":       {"\x80\x04cos\nsystem\n\x940h\x00U\x02id\x85R.", "os.system"},
		"python 2":          {"\x80\x02c__builtin__\nexecfile\n.", "__builtin__.execfile"},
	} {
		sig, err := Read(t.Context(), one("m.pkl", []byte(c.pickle)), "m.pkl", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Contains(sig.Unsafe, c.unsafe) {
			t.Errorf("%s: unsafe is %q, want %q", name, sig.Unsafe, c.unsafe)
		}
		if sig.Format != Pickle {
			t.Errorf("%s: the format is %s", name, sig.Format)
		}
	}
}

func TestHostilePickles(t *testing.T) {
	t.Parallel()
	file := func(text string) fstest.MapFS { return one("m.pkl", []byte(text)) }
	wrapper := func(shape, dtype, after string) string {
		return "\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(\x8c\x05shape" + shape +
			"\x8c\x05dtypecnumpy\ndtype\n\x8c" + string(rune(len(dtype))) + dtype + "\x85Rub" + after
	}
	nested := "\x80\x04"
	for range 300 {
		nested += wrapper("K\x01\x85", "O8", "")[2:]
	}
	refuse(t, []hostile{
		{name: "no end", files: file("\x80\x04N"), want: "ends in the middle"},
		{name: "protocol", files: file("\x80\x02\x80\x09."), want: "protocol 9"},
		{name: "opcode", files: file("\x80\x04\xff."), want: "0xff is no opcode"},
		{name: "empty stack", files: file("\x80\x04."), want: "stack"},
		{name: "stop at a mark", files: file("\x80\x04(."), want: "stack"},
		{name: "no mark", files: file("\x80\x04Nt."), want: "mark that is not there"},
		{name: "memo", files: file("\x80\x04h\x07."), want: "value 7, which it has not stored"},
		{name: "memo in words", files: file("\x80\x04gx\n."), want: "no number of a stored value"},
		{name: "long bytes", files: file("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."), want: "claims 18446744073709551615 bytes"},
		{name: "long bytes of 63 bits", files: file("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f."), want: "more than the file"},
		{name: "long text", files: file("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), limit: "Memory"},
		{name: "text", files: file("\x80\x04X\xff\xff\x00\x00a."), want: "more than the rest"},
		{name: "long number", files: file("\x80\x04\x8b\xff\xff\xff\x7f."), want: "more than the file"},
		{name: "long line", files: file("I" + strings.Repeat("1", 20000) + "\n."), want: "a line has more"},
		{name: "items of a number", files: file("\x80\x04K\x01K\x02a."), want: "has none"},
		{name: "odd dict", files: file("\x80\x04}(K\x01u."), want: "without a value"},
		{name: "stack bomb", files: file("\x80\x04" + strings.Repeat("]", 1_000_000)), limit: "Memory"},
		{name: "memo bomb", files: file("\x80\x04N" + strings.Repeat("\x94", 1_000_000)), limit: "Memory"},
		{name: "mark bomb", files: file("\x80\x04" + strings.Repeat("(", 1_000_000)), limit: "Memory"},
		{name: "array overflow", files: file(wrapper("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x86", "f8", ".")), want: "63 bits"},
		{name: "array", files: file(wrapper("J\xff\xff\xff\x7f\x85", "f8", ".")), want: "more than the file"},
		{name: "array by width", files: file(wrapper("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85", "f8", ".")), want: "larger than any file"},
		{name: "negative array", files: file(wrapper("J\xff\xff\xff\xff\x85", "f8", ".")), want: "a dimension is -1"},
		{name: "type of array", files: file(wrapper("K\x01\x85", "q8", ".")), want: "unknown type"},
		{name: "pickles in arrays", files: file(nested), limit: "Depth"},
		{name: "LZMA", files: one("m.joblib", []byte("\xfd7zXZ\x00\x00\x04")), want: "LZMA"},
		{name: "LZ4", files: one("m.joblib", []byte("\x04\x22\x4d\x18....")), want: "LZ4"},
		{name: "damaged zlib", files: one("m.joblib", []byte("\x78\x9c\xff\xff\xff\xff\xff\xff")), want: "m.joblib"},
	})
}

// TestMemoBombsStaySmall reads the pickle of a list that holds the one before it twice,
// a thousand times over: loaded and walked, it would never end.
func TestMemoBombsStaySmall(t *testing.T) {
	t.Parallel()
	bomb := "\x80\x04]\x94"
	for i := range 200 {
		bomb += "](h" + string([]byte{byte(i)}) + "h" + string([]byte{byte(i)}) + "e\x94"
	}
	sig, err := Read(t.Context(), one("m.pkl", []byte(bomb+".")), "m.pkl", Options{})
	if err != nil || len(sig.Notes) == 0 {
		t.Errorf("%v, %v", sig, err)
	}
	// The same with estimators: a pipeline of two times the same pipeline of ….
	steps := "\x80\x04csklearn.pipeline\nPipeline\n)\x81}b\x94"
	for i := range 40 {
		part := "h" + string([]byte{byte(i)})
		steps += "csklearn.pipeline\nPipeline\n)\x81}(\x8c\x05steps](\x8c\x01a" + part + "\x86\x8c\x01b" + part + "\x86eub\x94"
	}
	files := one("m.pkl", []byte(steps+"."))
	_, err = Read(t.Context(), files, "m.pkl", Options{Limits: Limits{Memory: 1 << 20, Items: 1_000_000}})
	if err == nil {
		t.Error("a pipeline of 2^40 steps was described")
	}
}

func TestPickleThatContainsItself(t *testing.T) {
	t.Parallel()
	loop := "\x80\x04csklearn.pipeline\nPipeline\n)\x81\x94}(\x8c\x05steps](\x8c\x01ah\x00\x86\x8c\x01bh\x00\x86eub."
	if _, err := Read(t.Context(), one("m.pkl", []byte(loop)), "m.pkl", Options{Limits: Limits{Memory: 1 << 20, Items: 1_000_000}}); err == nil {
		t.Error("a pipeline that is its own step was described")
	}
}

func TestInflatedPicklesAreBounded(t *testing.T) {
	t.Parallel()
	pickle := func(pack io.WriteCloser) {
		head := "\x80\x04B\x00\x00\x00\x70"
		io.WriteString(pack, head)
		zeros := make([]byte, 1<<20)
		for range 12 {
			pack.Write(zeros)
		}
		pack.Close()
	}
	var z, g bytes.Buffer
	pickle(zlib.NewWriter(&z))
	pickle(gzip.NewWriter(&g))
	for name, data := range map[string][]byte{"zlib": z.Bytes(), "gzip": g.Bytes()} {
		_, err := Read(t.Context(), one("m.joblib", data), "m.joblib", Options{Limits: Limits{Inflated: 8 << 20}})
		if err == nil || !strings.Contains(err.Error(), "bytes when unpacked") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPickle(f *testing.F) {
	f.Add([]byte("\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."))
	fuzzFormat(f, Sklearn, "m.pkl", "*.pkl", "*.joblib")
}

func FuzzSkops(f *testing.F) { fuzzFormat(f, Sklearn, "m.skops", "*.skops") }

func FuzzSkopsSchema(f *testing.F) { fuzzMember(f, Sklearn, "model.skops", "schema.json") }
