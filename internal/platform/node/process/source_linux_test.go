// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/internal/platform/node/container"
)

// TestSources mounts an image's files, and a part of a volume out of which no link leads.
func TestSources(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	if !r.spaces {
		t.Skip("this machine lets nobody mount")
	}
	dir, targets := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(targets, name) }
	for name, text := range map[string]string{"low/a": "low\n", "low/deep/b": "low\n", "top/a": "top\n", "volume/part/file": "part\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	volume := filepath.Join(dir, "volume")
	for link, to := range map[string]string{"in": "part", "out": "../low"} {
		if err := os.Symlink(to, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	layers := []string{filepath.Join(dir, "low"), filepath.Join(dir, "top")}
	spec := specFor(t, r, "sh", "-c", `
		cat $T/image/a $T/image/deep/b $T/deep/b $T/file $T/part/file
		for f in image/x deep/x part/x; do (echo x >$T/$f) 2>/dev/null || echo read-only; done
		echo x >$T/written/x; cat $T/written/x`)
	spec.Env = append(spec.Env, "T="+targets)
	spec.Mounts = []container.Mount{
		{Layers: layers, Source: "/", Target: at("image")},
		{Layers: layers[:1], Source: "/deep", Target: at("deep")},
		{Layers: layers, Source: "/deep/b", Target: at("file")},
		{Base: volume, Source: volume + "/in", Target: at("part"), ReadOnly: true},
		{Base: volume, Source: volume + "/part", Target: at("written")},
	}
	exit := await(t, start(t, r, spec))
	have, _ := os.ReadFile(spec.Log)
	if diff := cmp.Diff("top\nlow\nlow\nlow\npart\nread-only\nread-only\nread-only\nx\n", string(have)); diff != "" || exit.Code != 0 {
		t.Errorf("exit %+v, output (-want +got):\n%s", exit, diff)
	}
	for _, m := range []container.Mount{
		{Base: volume, Source: volume + "/out", Target: at("out")},
		{Layers: layers, Source: "/none", Target: at("none")},
	} {
		spec := specFor(t, r, "true")
		spec.Mounts = []container.Mount{m}
		var failed *container.StartError
		if _, err := r.Start(t.Context(), spec, os.Stdout); !errors.As(err, &failed) {
			t.Errorf("a mount of %s: %v", m.Source, err)
		}
	}
}
