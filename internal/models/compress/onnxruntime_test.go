// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diwan.dev/diwan/bench/search/peer"
	"diwan.dev/diwan/internal/models/onnx"
)

// python returns a Python with what testdata/requirements.txt lists, which is made once and kept in the user's cache.
func python(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	made, err := peer.Make(t.Context(), filepath.Join(cache, "diwan", "e2e", "compress"), filepath.Join("testdata", "requirements.txt"))
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("onnxruntime cannot be installed; this needs Python 3.11 with venv, and a package index: %v", err)
	}
	return made.Python
}

func script(t *testing.T, python string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), python, append([]string{filepath.Join("testdata", "models.py")}, args...)...)
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("models.py %v: %v\n%s", args, err, stderr.String())
	}
	return out
}

// answer is what onnxruntime says of a model.
type answer struct {
	Error     float64            `json:"error"`
	Accuracy  float64            `json:"accuracy"`
	Types     bool               `json:"types"`
	Metadata  []string           `json:"metadata"`
	Operators []string           `json:"operators"`
	Zeros     map[string]float64 `json:"zeros"`
}

// TestONNXRuntime runs what every method makes of models that are built and trained here.
func TestONNXRuntime(t *testing.T) {
	t.Parallel()
	python := python(t)
	dir := t.TempDir()
	script(t, python, "make", dir)
	models := []string{"digits", "cnn", "text", "old", "branches", "tables", "split"}
	reports := map[string]*Report{}
	for _, name := range models {
		for _, method := range Methods {
			file, err := onnx.Open(t.Context(), filepath.Join(dir, name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			made, report, err := Model(file.Model, method, Options{Sparsity: 0.5, ReduceRange: true})
			if err != nil {
				t.Fatalf("%s by %s: %v", name, method, err)
			}
			out := name + "." + string(method) + ".onnx"
			n, err := made.WriteFile(t.Context(), filepath.Join(dir, out))
			if err != nil {
				t.Fatal(err)
			}
			if n != report.After {
				t.Errorf("%s: %d bytes were written, %d are reported", out, n, report.After)
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
			reports[out] = report
		}
	}
	var answers map[string]answer
	if err := json.Unmarshal(script(t, python, "judge", dir), &answers); err != nil {
		t.Fatal(err)
	}
	for _, name := range models {
		original := answers[name+".onnx"]
		for method, bound := range map[Method]struct {
			error    float64 // of the outputs, relative to the largest
			operator string
		}{Int8: {0.02, "DequantizeLinear"}, DynamicInt8: {0.08, "DynamicQuantizeLinear"}, Float16: {0.005, "Cast"}, Prune: {10, ""}} {
			out := fmt.Sprintf("%s.%s.onnx", name, method)
			got, has := answers[out]
			if !has {
				t.Fatalf("onnxruntime says nothing of %s", out)
			}
			if got.Error > bound.error || got.Error == 0 {
				t.Errorf("%s: the outputs are off by %v, want some but at most %v", out, got.Error, bound.error)
			}
			if !got.Types || !slices.Equal(got.Metadata, original.Metadata) {
				t.Errorf("%s: the outputs' types are those of the original: %v; its metadata is %q", out, got.Types, got.Metadata)
			}
			if bound.operator != "" && !slices.Contains(got.Operators, bound.operator) {
				t.Errorf("%s: it has no %s: %q", out, bound.operator, got.Operators)
			}
		}
	}
	digits := answers["digits.onnx"]
	for method, bound := range map[Method]struct{ least, most float64 }{Int8: {0.24, 0.27}, DynamicInt8: {0.24, 0.27}, Float16: {0.49, 0.51}} {
		out := fmt.Sprintf("digits.%s.onnx", method)
		if got := answers[out]; digits.Accuracy < 0.9 || digits.Accuracy-got.Accuracy > 0.01 {
			t.Errorf("%s: the accuracy is %v, that of the original %v", out, got.Accuracy, digits.Accuracy)
		}
		r := reports[out]
		if ratio := float64(r.After) / float64(r.Before); ratio < bound.least || ratio > bound.most {
			t.Errorf("%s: it has %d bytes of %d", out, r.After, r.Before)
		}
		if r.Weights < 150_000 || r.All < r.Weights {
			t.Errorf("%s: %d of %d weights were compressed", out, r.Weights, r.All)
		}
	}
	for _, name := range []string{"coefficient", "coefficient1", "coefficient2", "coefficient3"} {
		if got := answers["digits.prune.onnx"].Zeros[name]; got != 0.5 {
			t.Errorf("of %s, %v are zero", name, got)
		}
	}
	for _, operator := range []string{"MatMulInteger", "ConvInteger", "ConvTranspose", "BatchNormalization"} {
		if got := answers["cnn.dynamic-int8.onnx"].Operators; !slices.Contains(got, operator) {
			t.Errorf("cnn.dynamic-int8.onnx has no %s: %q", operator, got)
		}
	}
}
