// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"diwan.dev/diwan/internal/models/compress"
	"diwan.dev/diwan/internal/models/onnx"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/registry"
)

// serve serves a registry for everybody and returns its host.
func serve(t *testing.T) string {
	t.Helper()
	opened, err := registry.Open(registry.Config{
		Dir: filepath.Join(t.TempDir(), "registry"), Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = opened.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); wait.Wait(); opened.Close() })
	return l.Addr().String()
}

// diwan runs a command with a home.
func diwan(home string, args ...string) (code int, out, errors string) {
	var stdout, stderr bytes.Buffer
	code = cli.Main(cli.House{Wings: []cli.Wing{Wing()}}, append(args, "--home", home), cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// TestDocs runs the commands of docs/models.md, in order.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile("../signature/testdata/mlp.onnx")
	if err != nil {
		t.Fatal(err)
	}
	home, host := t.TempDir(), serve(t)
	t.Setenv("COSIGN_PASSWORD", "secret")
	t.Setenv("DOCKER_CONFIG", home)
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("mnist/model", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mnist/model/mlp.onnx", model, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := classifier(64, 64).WriteFile(t.Context(), "mnist.onnx"); err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "$ diwan ")
		if !ok {
			continue
		}
		command, _, _ = strings.Cut(command, "#")
		args := strings.Fields(strings.ReplaceAll(command, "ghcr.io", host))
		code, out, errors := diwan(home, args...)
		if code != 0 {
			t.Fatalf("diwan %s ends with %d: %s", command, code, errors)
		}
		if strings.HasPrefix(command, "model inspect") {
			for _, want := range []string{"onnx", "float32", "[batch 4]", "parameters  112"} {
				if !strings.Contains(out, want) {
					t.Errorf("diwan %s does not say %q: %s", command, want, out)
				}
			}
		}
		count++
	}
	if count < 15 {
		t.Errorf("only %d commands were found", count)
	}
	if got, err := os.ReadFile("served/model/mlp.onnx"); err != nil || !bytes.Equal(got, model) {
		t.Errorf("the export differs: %v", err)
	}
	code, out, _ := diwan(home, "model", "list", "-o", "json")
	var all []summary
	if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil || len(all) != 4 {
		t.Errorf("the list is %s, %v", out, err)
	}
}

// classifier is a model of one matrix.
func classifier(rows, columns int64) *onnx.Model {
	values := make(onnx.Bytes, 4*rows*columns)
	for i := int64(0); i < rows*columns; i++ {
		binary.LittleEndian.PutUint32(values[4*i:], math.Float32bits(float32(i%17)-8))
	}
	return &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Nodes:        []*onnx.Node{{Op: "MatMul", Inputs: []string{"x", "w"}, Outputs: []string{"y"}}},
		Initializers: []*onnx.Tensor{{Name: "w", Type: onnx.Float32, Dims: []int64{rows, columns}, Values: values}},
		Inputs:       []*onnx.ValueInfo{onnx.NewValue("x", onnx.Float32, -1, rows)},
		Outputs:      []*onnx.ValueInfo{onnx.NewValue("y", onnx.Float32, -1, columns)},
	}}
}

func TestCompress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.onnx"), filepath.Join(dir, "out.onnx")
	if _, err := classifier(64, 64).WriteFile(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := classifier(4, 4).WriteFile(t.Context(), filepath.Join(dir, "tiny.onnx")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"in.onnx out.onnx", 2, "--method"},
		{"in.onnx out.onnx --method int7", 2, "int8, dynamic-int8, fp16, prune"},
		{"in.onnx --method int8", 2, "the model's file"},
		{"in.onnx out.onnx --method prune", 2, "--sparsity"},
		{"in.onnx out.onnx --method prune --sparsity 1", 2, "below 1"},
		{"in.onnx out.onnx --method prune --sparsity NaN", 2, "below 1"},
		{"in.onnx out.onnx --method int8 --sparsity 0.5", 2, "--sparsity goes with"},
		{"in.onnx out.onnx --method fp16 --reduce-range", 2, "--reduce-range goes with"},
		{"none.onnx out.onnx --method int8", 1, "none.onnx"},
		{"in.onnx . --method int8", 1, "is a folder"},
		{"tiny.onnx out.onnx --method int8", 1, "no tensor has as many as 256"},
		{". out.onnx --method int8", 1, "is not a file"},
	} {
		args := strings.Fields(c.args)
		for i, arg := range args {
			if strings.HasSuffix(arg, ".onnx") || arg == "." {
				args[i] = filepath.Join(dir, arg)
			}
		}
		code, _, errors := diwan(dir, append([]string{"model", "compress"}, args...)...)
		if code != c.code || !strings.Contains(errors, c.want) {
			t.Errorf("compress %s: %d %s, not %d with %q", c.args, code, errors, c.code, c.want)
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Fatalf("compress %s wrote a file: %v", c.args, err)
		}
	}
	code, text, errors := diwan(dir, "model", "compress", in, out, "--method", "int8", "-o", "json")
	var report compress.Report
	if err := json.Unmarshal([]byte(text), &report); code != 0 || err != nil {
		t.Fatalf("it ends with %d: %s %v", code, errors, err)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if report.Weights != 4096 || report.All != 4096 || report.Tensors != 1 || report.After != info.Size() || report.Before < 4*4096 {
		t.Errorf("the report is %+v of a file of %d bytes", report, info.Size())
	}
	// Onto itself: the model is read while it is replaced.
	if code, text, errors := diwan(dir, "model", "compress", in, in, "--method", "int8"); code != 0 || !strings.Contains(text, "4096 of 4096 weights by int8") {
		t.Errorf("it ends with %d: %s%s", code, text, errors)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(in); err != nil || !bytes.Equal(got, want) {
		t.Errorf("in its place the result differs: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"model save /nowhere m:v1", 1, "/nowhere"},
		{"model save . M:v1", 2, "lower-case"},
		{"model save .", 2, "a path and a name"},
		{"model save --type kitops . m:v1", 2, "--type"},
		{"model inspect m:v1", 1, "diwan model pull"},
		{"model push m:v1", 1, "the store does not have"},
		{"model remove m:v1", 1, "does not have"},
		{"model pul", 2, "unknown command"},
		{"model sign m:v1", 2, "key"},
		{"model verify m:v1 --key /nowhere", 1, "/nowhere"},
		{"model login ghcr.io", 2, "-u"},
		{"model export m:v1 -o yaml", 2, "output format"},
	} {
		code, _, errors := diwan(home, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errors, c.want) {
			t.Errorf("diwan %s: %d %s, not %d with %q", c.args, code, errors, c.code, c.want)
		}
	}
}
