// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"pgregory.net/rapid"

	"diwan.dev/diwan/internal/models/signature"
)

func pack(t testing.TB, names ...string) *Manifest {
	t.Helper()
	var layers []ocispec.Descriptor
	for _, name := range names {
		d, err := RawLayer(name, digest.FromString(name), FileMetadata{Name: name, Mode: 0o644, Size: 5, ModTime: time.Unix(0, 0).UTC(), Typeflag: '0'})
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, d)
	}
	_, raw, err := Pack(Config{}, layers, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPack(t *testing.T) {
	t.Parallel()
	m := pack(t, "model.safetensors", "config.json", "README.md", "sub/train.py", "data.csv")
	if m.Kind != ModelPack || m.ArtifactType != ArtifactType {
		t.Errorf("kind %s, type %s", m.Kind, m.ArtifactType)
	}
	for i, role := range []Role{Weight, WeightConfig, Doc, Code, Dataset} {
		f := m.Files[i]
		if f.Role != role || f.Tar || f.File == nil || f.File.Size != 5 || f.MediaType != RawType(role) {
			t.Errorf("%s is %+v, not a raw %s", f.Path, f, role)
		}
	}
	if n := len(m.Blobs()); n != 6 {
		t.Errorf("%d blobs", n)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := string(pack(t, "a.bin", "b.bin").Raw)
	a, b := digest.FromString("a.bin"), digest.FromString("b.bin")
	for _, c := range []struct{ name, from, to, want string }{
		{"not JSON", good, "{", "not JSON"},
		{"too large", good, good + strings.Repeat(" ", MaxManifest), "may have at most"},
		{"index", good, `{"schemaVersion":2,"manifests":[]}`, "index of several"},
		{"image", mediaTypeConfig, "application/vnd.oci.image.config.v1+json", ""},
		{"schema", `"schemaVersion":2`, `"schemaVersion":1`, "schemaVersion"},
		{"digest", string(a), "sha512:" + a.Encoded(), "layers[0].digest"},
		{"short digest", string(a), "sha256:../../etc", "layers[0].digest"},
		{"upper-case digest", string(a), "sha256:" + strings.ToUpper(a.Encoded()), "layers[0].digest"},
		{"negative", `"size":5`, `"size":-5`, "layers[0].size"},
		{"overflow", `"size":5`, `"size":99999999999999999999`, "not an OCI manifest"},
		{"two sizes", string(b) + `","size":5`, string(a) + `","size":6`, "elsewhere"},
		{"media type", "weight.v1.raw", "weight.v2.raw", "layers[0].mediaType"},
		{"raw and zipped", "weight.v1.raw", "weight.v1.raw+gzip", "layers[0].mediaType"},
		{"twice", `filepath":"b.bin"`, `filepath":"a.bin"`, "twice"},
		{"below a file", `filepath":"b.bin"`, `filepath":"a.bin/b"`, "a file and a folder"},
		{"parent", `filepath":"b.bin"`, `filepath":"../b.bin"`, "leads out"},
		{"inner parent", `filepath":"b.bin"`, `filepath":"x/../../b.bin"`, "leads out"},
		{"absolute", `filepath":"b.bin"`, `filepath":"/b.bin"`, "leads out"},
		{"foreign", `"size":5`, `"size":5,"urls":["https://evil.example"]`, "elsewhere"},
		{"no layers", `"layers":[`, `"layerz":[`, "layers"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Errorf("%s: the replacement is not there", c.name)
			continue
		}
		m, err := Parse([]byte(text))
		var e *Error
		if c.name == "image" { // the artifact's type still says what it is
			if err != nil || m.Kind != ModelPack {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, not about %q", c.name, err, c.want)
		}
	}
	if _, err := Parse([]byte(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json"}}`)); !errors.Is(err, ErrNotModel) {
		t.Errorf("an image: %v", err)
	}
}

// TestCheckPath: what is accepted stays below any folder.
func TestCheckPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "..", ".", "", "/", `\`, "b c", "\x00", "ü"}), 1, 5).Draw(t, "parts"), "/")
		if CheckPath(name) != nil {
			return
		}
		if !fs.ValidPath(name) || strings.Contains("/"+name+"/", "/../") || strings.HasPrefix(name, "/") {
			t.Errorf("%q is accepted", name)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(pack(f, "a.bin").Raw)
	f.Add([]byte(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.caicloud.model.config.v1alpha1+json"},"layers":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err != nil {
			return
		}
		for _, l := range m.Files {
			if CheckDigest(l.Digest) != nil || l.Size < 0 || !l.Tar && CheckPath(l.Path) != nil {
				t.Errorf("accepted %+v", l)
			}
		}
	})
}

func TestORMBFile(t *testing.T) {
	t.Parallel()
	const text = `
author: "Ce Gao"
format: SavedModel
framework: TensorFlow
tags: [a, b]
metrics:
  training:
  - {name: acc, value: "0.9"}
hyperParameters:
- {name: lr, value: "0.1"}
signature:
  inputs:
  - {name: x, size: [-1, 28, 28, 1], dType: float32}
  layers: {Conv2D: 2}
training:
  git: {repository: git@example.com:a/b, revision: abc}
`
	m, err := ReadORMBFile(fstest.MapFS{ORMBFile: {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	layer := ORMBLayer(ocispec.Descriptor{Digest: digest.FromString("x"), Size: 1})
	config, raw, err := PackORMB(m, layer, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(raw)
	if err != nil || parsed.Kind != ORMB || !parsed.Files[0].Tar {
		t.Fatalf("%+v, %v", parsed, err)
	}
	again, err := ORMBMetadata(config)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(m)
	b, _ := json.Marshal(again)
	if string(a) != string(b) || again.Signature.Inputs[0].Size[1] != 28 || again.Training.Git.Revision != "abc" {
		t.Errorf("%s\n%s", a, b)
	}
	if _, err := m.YAML(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		format string
		names  []string
		ok     bool
	}{
		{"ONNX", []string{"m.onnx"}, true}, {"ONNX", []string{"a.onnx", "b.onnx"}, false}, {"TensorRT", []string{"m.engine"}, true},
		{"CaffeModel", []string{"m.caffemodel"}, false}, {"PMML", []string{"m.pmml", "x"}, false}, {"Others", nil, true}, {"", nil, false}, {"onnx", nil, false},
	} {
		if err := CheckORMB(c.format, c.names); (err == nil) != c.ok {
			t.Errorf("%s %v: %v", c.format, c.names, err)
		}
	}
}

func TestKitfile(t *testing.T) {
	t.Parallel()
	text, err := Kitfile([]byte(`{"manifestVersion":"1.0.0","model":{"path":"m","digest":"sha256:x","diffId":"y","parameters":{"digest":"mine"}},"docs":[{"path":"README","digest":"z"}]}`))
	if err != nil || strings.Contains(string(text), "sha256") || !strings.Contains(string(text), "mine") || !strings.Contains(string(text), "README") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	n := int64(6_738_415_616)
	var c Config
	c.Describe(&signature.Signature{Format: signature.Safetensors, Parameters: &n, Tensors: []signature.Tensor{
		{Type: "float32", Shape: signature.Fixed(10)}, {Type: "bfloat16", Shape: signature.Fixed(4096, 4096)},
	}})
	if c.Config.ParamSize != "6.7b" || c.Config.Precision != "bfloat16" || c.Config.Format != "safetensors" {
		t.Errorf("%+v", c.Config)
	}
}
