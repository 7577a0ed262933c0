// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// TestImageVolumes mounts images, and parts of them, as volumes.
func TestImageVolumes(t *testing.T) {
	t.Parallel()
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			low, top := filepath.Join(tempDir(t), "low"), filepath.Join(tempDir(t), "top")
			put(t, low, "a", "low\n")
			put(t, low, "b", "low\n")
			put(t, low, "gone", "low\n")
			put(t, low, "deep/file", "deep\n")
			put(t, top, "b", "top\n")
			if err := unix.Mknod(filepath.Join(top, "gone"), unix.S_IFCHR, 0); err != nil {
				t.Fatal(err)
			}
			for link, to := range map[string]string{"inside": "/deep", "outside": "../../../../deep/file", "nowhere": "/etc/passwd"} {
				if err := os.Symlink(to, filepath.Join(low, link)); err != nil {
					t.Fatal(err)
				}
			}
			put(t, low, "program", "#!/bin/sh\necho it runs\n")
			if err := os.Chmod(filepath.Join(low, "program"), 0o755); err != nil {
				t.Fatal(err)
			}
			both := []string{low, top}
			spec := specFor(t, "sh", "-c", `
				cd /both; cat a b; ls; echo x 2>/dev/null >a || echo read-only; ./program 2>/dev/null || echo no programs
				cat /one/b /part/file /linked/file /file; ls /linked; grep -c ' /both .*ro,nosuid,nodev,noexec' /proc/self/mountinfo`)
			spec.Mounts = []container.Mount{
				{Target: "/both", Source: "/", Layers: both},
				{Target: "/one", Source: "/", Layers: both[:1]},
				{Target: "/part", Source: "/deep", Layers: both},
				{Target: "/linked", Source: "/inside", Layers: both},
				{Target: "/file", Source: "/outside", Layers: both},
			}
			before := []map[string]string{tree(t, low), tree(t, top)}
			text, exit := output(t, r, spec)
			want := "low\ntop\na\nb\ndeep\ninside\nnowhere\noutside\nprogram\nread-only\nno programs\nlow\ndeep\ndeep\ndeep\nfile\n1\n"
			if diff := cmp.Diff(want, text); diff != "" || exit.Code != 0 {
				t.Errorf("%+v (-want +got):\n%s", exit, diff)
			}
			if diff := cmp.Diff(before, []map[string]string{tree(t, low), tree(t, top)}); diff != "" {
				t.Errorf("the layers have changed (-before +after):\n%s", diff)
			}
			for _, path := range []string{"/none", "/nowhere", "/gone"} {
				spec := specFor(t, "true")
				spec.Mounts = []container.Mount{{Target: "/x", Source: path, Layers: both}}
				log := openLog(t, spec)
				if _, err := r.Start(t.Context(), spec, log); err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("%s, which the image does not have: %v", path, err)
				}
				log.Close()
			}
		})
	}
}

// TestSwappedSubPath starts containers with a part of a volume whose way there is replaced,
// meanwhile, by links that lead out (CVE-2021-25741): they see that part, or do not start.
func TestSwappedSubPath(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	outside, volume := tempDir(t), tempDir(t)
	put(t, outside, "file", "of the machine\n")
	put(t, volume, "x/file", "of the volume\n")
	for i, to := range []string{outside, "../../../../../../.." + outside} {
		if err := os.Symlink(to, fmt.Sprintf("%s/link%d", volume, i)); err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, volume+"/x", unix.AT_FDCWD, fmt.Sprintf("%s/link%d", volume, i%2), unix.RENAME_EXCHANGE)
			}
		}
	}()
	layer := image(t)
	started := 0
	for range 200 {
		spec := specFor(t, "cat", "/data/file")
		spec.Root.Layers = []string{layer}
		spec.Mounts = []container.Mount{{Source: volume + "/x", Base: volume, Target: "/data"}}
		log := openLog(t, spec)
		run, err := r.Start(t.Context(), spec, log)
		log.Close()
		if err != nil {
			continue // a link was there
		}
		started++
		await(t, run)
		if text, err := os.ReadFile(spec.Log); err != nil || string(text) != "of the volume\n" {
			t.Errorf("it sees %q, %v", text, err)
		}
		if err := run.Remove(); err != nil {
			t.Error(err)
		}
		if started == 10 {
			break
		}
	}
	close(stop)
	<-stopped
	if started == 0 {
		t.Error("no container has started")
	}
}
