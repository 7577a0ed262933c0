// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
	if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil || len(all) != 3 {
		t.Errorf("the list is %s, %v", out, err)
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
