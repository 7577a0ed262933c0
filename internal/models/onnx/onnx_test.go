// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// readAll reads a model in memory.
func readAll(b []byte) (*Model, error) {
	return Read(context.Background(), bytes.NewReader(b), int64(len(b)))
}

func encode(t testing.TB, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := m.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != m.Size() || n != int64(b.Len()) {
		t.Fatalf("%d bytes were written, %d are there, the size is %d", n, b.Len(), m.Size())
	}
	return b.Bytes()
}

// canonical are the fields of a message in the order of their numbers, those within some of them, too: what
// two messages have in common that mean the same.
func canonical(b []byte, path string) string {
	fields := map[protowire.Number][]string{}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		_, _, tag := protowire.ConsumeTag(b)
		value := string(b[tag:n])
		if typ == protowire.BytesType {
			payload, _ := protowire.ConsumeBytes(b[tag:])
			inner := path + "." + string(rune('a'+num))
			value = string(payload)
			if slices.Contains([]string{".h", ".h.b", ".h.f", ".i"}, inner) { // graph, node, initializer, opset
				value = canonical(payload, inner)
			}
		}
		b = b[n:]
		if value == "" && (path == ".h.b" && (num == 3 || num == 7) || path == ".i") {
			continue // an empty name or domain is none
		}
		fields[num] = append(fields[num], value)
	}
	var text strings.Builder
	for num := protowire.Number(0); num < 100; num++ {
		for _, value := range fields[num] {
			text.WriteString(strings.Repeat(" ", len(path)))
			text.WriteString(string(rune('0'+num)) + "=" + value + "\n")
		}
	}
	return text.String()
}

// TestPassesThrough reads and writes models of frameworks: nothing is lost or changed.
func TestPassesThrough(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../signature/testdata/*.onnx")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := readAll(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*Model{m, m.Clone()} {
			if a, b := canonical(want, ""), canonical(encode(t, m), ""); a != b {
				t.Errorf("%s is not what it was:\n%q\n%q", file, a, b)
			}
		}
	}
}

// TestUnknownFields passes through fields that no version of ONNX has.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	unknown := appendText(nil, 99, "future")
	node := slices.Concat(appendText(nil, 1, "x"), appendText(nil, 2, "y"), appendText(nil, 4, "Relu"), unknown)
	tensor := slices.Concat(appendInt(nil, 1, 2), appendInt(nil, 2, 1), appendText(nil, 8, "w"), appendBytes(nil, 9, make([]byte, 8)), unknown)
	graph := slices.Concat(appendBytes(nil, 1, node), appendBytes(nil, 5, tensor), unknown)
	want := slices.Concat(appendInt(nil, 1, 8), appendBytes(nil, 7, graph), unknown)
	m, err := readAll(want)
	if err != nil {
		t.Fatal(err)
	}
	got := encode(t, m)
	if a, b := canonical(want, ""), canonical(got, ""); a != b || strings.Count(string(got), "future") != 4 {
		t.Errorf("they are not what they were:\n%q\n%q", a, b)
	}
}

// TestValues reads float32 values as they may be stored: as bytes, as packed or as loose numbers.
func TestValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Uint32(), 1, 20).Draw(t, "bits")
		var raw, loose []byte
		for _, value := range bits {
			raw = binary.LittleEndian.AppendUint32(raw, value)
			loose = protowire.AppendFixed32(protowire.AppendTag(loose, 4, protowire.Fixed32Type), value)
		}
		cut := rapid.IntRange(0, len(bits)).Draw(t, "cut") * 4
		for name, field := range map[string][]byte{
			"raw": appendBytes(nil, 9, raw), "packed": appendBytes(nil, 4, raw), "loose": loose,
			"in pieces": slices.Concat(appendBytes(nil, 4, raw[:cut]), appendBytes(nil, 4, raw[cut:])),
		} {
			tensor := slices.Concat(appendInt(nil, 1, int64(len(bits))), appendInt(nil, 2, 1), appendText(nil, 8, "w"), field)
			m, err := readAll(appendBytes(nil, 7, appendBytes(nil, 5, tensor)))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if _, err := m.Graph.Initializers[0].Values.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), raw) {
				t.Fatalf("%s: %x, %v, not %x", name, got.Bytes(), err, raw)
			}
		}
	})
}

// large is a model with a tensor that has n values.
func large(n int64) *Model {
	values := make(Bytes, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(values[4*i:], math.Float32bits(float32(i)))
	}
	return &Model{IRVersion: 8, Graph: &Graph{Initializers: []*Tensor{
		{Name: "a", Type: Float32, Dims: []int64{n}, Values: values},
		{Name: "small", Type: Int8, Dims: []int64{2}, Values: Bytes{1, 2}},
		{Name: "b", Type: Float32, Dims: []int64{n, 1}, Values: values},
	}}}
}

// TestExternal writes tensors beside a model, and reads them.
func TestExternal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.onnx")
	want := large(1000)
	for range 2 { // the second time over the first
		n, err := want.writeFile(t.Context(), path, 500)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + ".data")
		if err != nil || info.Size() != alignment+4000 {
			t.Fatal(info, err)
		}
		if got := f.Size; got != n-96 { // what aligns the second tensor
			t.Errorf("the size is %d, %d bytes were written", got, n)
		}
		if !bytes.Equal(encode(t, f.Model), encode(t, want)) {
			t.Error("it is not what was written")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := want.writeFile(t.Context(), path, 50); err == nil || !strings.Contains(err.Error(), "without its tensors") {
		t.Errorf("a graph that is too large: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	// What fails leaves what was there.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := large(5).WriteFile(ctx, path); err == nil {
		t.Error("it does not end with its context")
	}
	if f, err := Open(t.Context(), path); err != nil || f.Graph.Initializers[0].Dims[0] != 1000 {
		t.Error(err)
	} else {
		f.Close()
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	model := func(fields ...[]byte) []byte { return appendBytes(nil, 7, slices.Concat(fields...)) }
	tensor := func(fields ...[]byte) []byte {
		return model(appendBytes(nil, 5, append(appendText(nil, 8, "w"), slices.Concat(fields...)...)))
	}
	external := func(entries ...string) []byte {
		b := slices.Concat(appendInt(nil, 1, 2), appendInt(nil, 2, 1), appendInt(nil, 14, 1))
		for i := 0; i < len(entries); i += 2 {
			b = appendBytes(b, 13, appendText(appendText(nil, 1, entries[i]), 2, entries[i+1]))
		}
		return tensor(b)
	}
	deep := appendText(nil, 4, "If")
	for range 100 {
		deep = appendBytes(appendText(nil, 4, "If"), 5, appendBytes(nil, 6, appendBytes(nil, 1, deep)))
	}
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for _, name := range []string{filepath.Join(dir, "data"), outside} {
		if err := os.WriteFile(name, make([]byte, 8), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	two := []byte("\x0a\x00")
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "no graph"},
		{"text", []byte("hello, world"), "no protobuf message"},
		{"two graphs", append(model(), model()...), "two graphs"},
		{"truncated", model(two)[:2], "truncated or damaged"},
		{"group", []byte{0x0b, 0x0c}, "wire type"},
		{"length", []byte("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "claims 18446744073709551615 bytes"},
		{"graph is a number", appendInt(nil, 7, 1), "no message"},
		{"depth", model(appendBytes(nil, 1, deep)), "nested more than"},
		{"negative dimension", tensor(appendInt(nil, 1, -1), appendInt(nil, 2, 1)), `tensor "w": it has a dimension of -1`},
		{"overflow", tensor(appendInt(nil, 1, 1<<40), appendInt(nil, 1, 1<<40), appendInt(nil, 2, 1)), "larger than any file"},
		{"wrong size", tensor(appendInt(nil, 1, 2), appendInt(nil, 2, 1), appendBytes(nil, 9, []byte("1234"))), "has 8 bytes, but 4 are stored"},
		{"no values", tensor(appendInt(nil, 1, 2), appendInt(nil, 2, 1)), "but 0 are stored"},
		{"values twice", tensor(appendInt(nil, 2, 1), appendBytes(nil, 9, []byte("1234")), appendBytes(nil, 4, []byte("1234"))), "twice"},
		{"text as bytes", tensor(appendInt(nil, 2, 8), appendBytes(nil, 9, []byte("1234"))), "cannot be stored as bytes"},
		{"rank", tensor(bytes.Repeat(appendInt(nil, 1, 1), 1100)), "more than 1000 dimensions"},
		{"type", tensor(appendInt(nil, 2, 77)), "unknown type 77"},
		{"same names", model(appendBytes(nil, 5, appendInt(nil, 2, 8)), appendBytes(nil, 5, appendInt(nil, 2, 8))), `two initializers are named ""`},
		{"climbs out", external("location", "../secret"), "leads out of the model's folder"},
		{"climbs out later", external("location", "a/../../secret"), "leads out"},
		{"absolute", external("location", outside), "leads out"},
		{"link", external("location", "link"), "escapes"},
		{"folder", external("location", "."), "is not a file"},
		{"missing", external("location", "none"), "none, which is not beside the model: put it there"},
		{"no location", external(), "not named"},
		{"offset", external("location", "data", "offset", "-1"), `the offset of its values in data is "-1"`},
		{"beyond", external("location", "data", "offset", "1"), "beyond the end of data, which has 8"},
		{"length", external("location", "data", "length", "7"), "its entry says 7"},
		{"far beyond", external("location", "data", "offset", "9223372036854775807"), "beyond the end"},
		{"within an attribute", model(appendBytes(nil, 1, appendBytes(nil, 5, appendBytes(nil, 5,
			slices.Concat(appendInt(nil, 1, 2), appendInt(nil, 2, 1), appendInt(nil, 14, 1), appendBytes(nil, 13, appendText(appendText(nil, 1, "location"), 2, "data"))))))),
			"save the model in one file"},
	} {
		path := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), path)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, not %q", c.name, err, c.want)
		}
	}
}

// zeros is a file of zeros with a beginning.
type zeros struct{ head []byte }

func (z zeros) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if at < int64(len(z.head)) {
		copy(b, z.head[at:])
	}
	return len(b), nil
}

// TestMemory refuses names and nodes that do not fit, before it reads them, and takes weights of any size.
func TestMemory(t *testing.T) {
	t.Parallel()
	const size = 1 << 40
	length := func(num protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), n)
	}
	_, err := Read(t.Context(), zeros{length(2, size-100)}, size)
	if err == nil || !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("a name of a terabyte: %v", err)
	}
	for _, c := range []struct {
		values uint64
		want   string
	}{{4 << 30, ""}, {4<<30 - 4, "are stored"}} {
		head := slices.Concat(appendInt(nil, 1, 1<<30), appendInt(nil, 2, 1), length(9, c.values))
		tensor := append(length(5, uint64(len(head))+c.values), head...)
		graph := append(length(7, uint64(len(tensor))+c.values), tensor...)
		m, err := Read(t.Context(), zeros{graph}, int64(len(graph))+int64(c.values))
		if c.want == "" && (err != nil || m.Graph.Initializers[0].Values.Size() != 4<<30) {
			t.Errorf("4 GiB of weights: %v", err)
		} else if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("4 GiB less one: %v", err)
		}
	}
}

// FuzzRead reads anything: it is refused, or is the same after it was written.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"mlp", "sklearn"} {
		data, err := os.ReadFile("../signature/testdata/" + name + ".onnx")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readAll(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		once := encode(t, m)
		again, err := readAll(once)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if twice := encode(t, again.Clone()); !bytes.Equal(once, twice) {
			t.Errorf("it changes each time:\n%x\n%x", once, twice)
		}
	})
}
