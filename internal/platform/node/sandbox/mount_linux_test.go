// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// put writes a file below a directory.
func put(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// tree lists a directory: the names, modes and contents of what is in it.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular() && info.Size() < 1000:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + to
		}
		found[strings.TrimPrefix(path, dir)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// modes are the ways in which a root directory is made.
var modes = map[string]func(*Config){
	"overlay": func(*Config) {},
	"copy":    func(c *Config) { c.NoOverlay = true },
}

// TestLayers reads and changes files of two layers, which stay what they are.
func TestLayers(t *testing.T) {
	t.Parallel()
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			spec := specFor(t, "sh", "-c", `cat /etc/a /etc/b; echo new >/etc/a; rm /etc/b; echo c >/etc/c; chmod 700 /etc; ln /etc/c /etc/d; ls /etc; cat /etc/a /etc/d`)
			top := filepath.Join(tempDir(t), "top")
			put(t, top, "etc/a", "upper\n")
			put(t, spec.Root.Layers[0], "etc/a", "lower\n")
			put(t, spec.Root.Layers[0], "etc/b", "b\n")
			spec.Root.Layers = append(spec.Root.Layers, top)
			before := []map[string]string{tree(t, spec.Root.Layers[0]), tree(t, top)}
			for range 2 { // each run begins with the image
				text, exit := output(t, r, spec)
				if want := "upper\nb\na\nc\nd\nnew\nc\n"; text != want || exit.Code != 0 {
					t.Errorf("got %q and %+v, want %q", text, exit, want)
				}
				spec.ID.Attempt++
				spec.Log += "x"
			}
			if diff := cmp.Diff(before, []map[string]string{tree(t, spec.Root.Layers[0]), tree(t, top)}); diff != "" {
				t.Errorf("the layers have changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestManyLayers has more layers than a page of the kernel's has room for their paths.
func TestManyLayers(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "ls /many | wc -l; cat /same")
	dir := filepath.Join(tempDir(t), strings.Repeat("long", 30))
	for i := range 120 {
		layer := filepath.Join(dir, string(rune('a'+i/26))+string(rune('a'+i%26)))
		put(t, layer, "many/"+filepath.Base(layer), "")
		put(t, layer, "same", filepath.Base(layer)+"\n")
		spec.Root.Layers = append(spec.Root.Layers, layer)
	}
	if text, exit := output(t, r, spec); text != "120\nep\n" || exit.Code != 0 {
		t.Errorf("got %q and %+v", text, exit)
	}
}

func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", `echo x >/x || echo refused; echo x >/tmp/x || echo refused; echo y >/data/y && cat /data/y; echo z >/dev/shm/z && cat /dev/shm/z`)
	spec.Root.ReadOnly = true
	data := tempDir(t)
	spec.Mounts = []container.Mount{{Source: data, Target: "/data"}}
	text, exit := output(t, r, spec)
	if want := "sh: can't create /x: Read-only file system\nrefused\nsh: can't create /tmp/x: Read-only file system\nrefused\ny\nz\n"; text != want || exit.Code != 0 {
		t.Errorf("got %q and %+v, want %q", text, exit, want)
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			data := tempDir(t)
			put(t, data, "dir/file", "dir\n")
			put(t, data, "file", "file\n")
			put(t, data, "hosts", "hosts\n")
			spec := specFor(t, "sh", "-c", `cat /new/dir/file /etc/new/file /etc/hosts /etc/link /dev/shm/file /rw/file
				echo x >/new/dir/file || echo refused
				echo x >/etc/new/file || echo refused
				echo written >/rw/made
				echo written >>/etc/hosts; cat /nested/dir/file /nested/file`)
			spec.Mounts = []container.Mount{
				{Source: data + "/dir", Target: "/new/dir", ReadOnly: true},
				{Source: data + "/file", Target: "/etc/new/file", ReadOnly: true},
				{Source: data + "/hosts", Target: "/etc/hosts"},
				{Source: data + "/file", Target: "/etc/link"},
				{Source: data + "/dir", Target: "/dev/shm"},
				{Source: data + "/dir", Target: "/rw"},
				{Source: data, Target: "/nested"},
				{Source: data + "/hosts", Target: "/nested/file"},
				{Source: "/no/such/source", Target: "/optional", Optional: true},
			}
			layer := spec.Root.Layers[0]
			put(t, layer, "etc/hosts", "of the image\n")
			put(t, layer, "to", "of the link\n")
			if err := os.Symlink("../to", layer+"/etc/link"); err != nil {
				t.Fatal(err)
			}
			before := tree(t, layer)
			text, exit := output(t, r, spec)
			want := "dir\nfile\nhosts\nfile\ndir\ndir\n" +
				"sh: can't create /new/dir/file: Read-only file system\nrefused\nsh: can't create /etc/new/file: Read-only file system\nrefused\n" +
				"dir\nhosts\nwritten\n"
			if diff := cmp.Diff(want, text); diff != "" || exit.Code != 0 {
				t.Errorf("%+v (-want +got):\n%s", exit, diff)
			}
			if diff := cmp.Diff(before, tree(t, layer)); diff != "" {
				t.Errorf("the layer has changed (-before +after):\n%s", diff)
			}
			if text, err := os.ReadFile(data + "/dir/made"); err != nil || string(text) != "written\n" {
				t.Errorf("the volume holds %q, %v", text, err)
			}
		})
	}
}

// TestHostileImage has links in an image lead out of it, where mount points and the kernel's
// directories are made: nothing appears outside.
func TestHostileImage(t *testing.T) {
	t.Parallel()
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			outside := tempDir(t)
			put(t, outside, "secret", "secret\n")
			for name, tc := range map[string]struct {
				reason string
				links  map[string]string // name in the image to what it leads to
				target string
				want   string // where the mount is seen
			}{
				"absolute":  {"an absolute link is inside", map[string]string{"etc/out": outside}, "/etc/out/x/file", outside + "/x/file"},
				"relative":  {"parents end at the root", map[string]string{"etc/out": "../../../../../.." + outside}, "/etc/out/y", outside + "/y"},
				"dots":      {"so do those of a target", nil, "/../../.." + outside + "/z", outside + "/z"},
				"proc":      {"the kernel's directory is no link", map[string]string{"proc": outside}, "/x", "/x"},
				"sys":       {"nor is this", map[string]string{"sys": outside}, "/x", "/x"},
				"dev":       {"nor is this", map[string]string{"dev": outside}, "/x", "/x"},
				"to dev":    {"a link to /dev is followed inside", map[string]string{"data": "/dev/shm"}, "/data/x", "/dev/shm/x"},
				"to proc":   {"what is mounted below /proc is hidden", map[string]string{"data": "/proc"}, "/data/x", "/bin/busybox"},
				"dangling":  {"a link to nothing leads to what is made", map[string]string{"etc/out": "/made/here"}, "/etc/out", "/made/here"},
				"magic":     {"a link of the kernel's is only its text", map[string]string{"etc/out": "/proc/self/root/../../" + outside}, "/x", "/x"},
				"recursive": {"a link to itself is an error", map[string]string{"etc/out": "out"}, "/etc/out", ""},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					spec := specFor(t, "sh", "-c", `cat "$0" | head -n 1; test -c /dev/null && test -r /proc/self/status && test -d /sys/class && echo fine`, tc.want)
					source := put(t, tempDir(t), "file", "volume\n")
					for link, to := range tc.links {
						if err := os.Symlink(to, filepath.Join(spec.Root.Layers[0], link)); err != nil {
							t.Fatal(err)
						}
					}
					spec.Mounts = []container.Mount{{Source: source, Target: tc.target}}
					before := tree(t, outside)
					log := openLog(t, spec)
					defer log.Close()
					if tc.want == "" {
						if _, err := r.Start(t.Context(), spec, log); err == nil {
							t.Errorf("%s: it starts", tc.reason)
						}
						return
					}
					text, exit := output(t, r, spec)
					if name == "to proc" {
						text = "volume\n" + text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
					}
					if text != "volume\nfine\n" || exit.Code != 0 {
						t.Errorf("%s: got %q, %+v", tc.reason, text, exit)
					}
					if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
						t.Errorf("%s: outside of the image (-before +after):\n%s", tc.reason, diff)
					}
				})
			}
		})
	}
}

// TestSwappedMountPoint starts containers while a directory of a volume, in which there is a
// mount point, is replaced by a link that leads out, and back: nothing is made or mounted
// outside of the volume.
func TestSwappedMountPoint(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	outside, volume := tempDir(t), tempDir(t)
	if err := os.Mkdir(volume+"/x", 0o755); err != nil {
		t.Fatal(err)
	}
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
	source := put(t, tempDir(t), "file", "volume\n")
	for i := range 30 {
		spec := specFor(t, "true")
		spec.Root.Layers = []string{layer}
		spec.Mounts = []container.Mount{{Source: volume, Target: "/data"}, {Source: source, Target: fmt.Sprintf("/data/x/made%d", i)}}
		log := openLog(t, spec)
		run, err := r.Start(t.Context(), spec, log)
		log.Close()
		if err != nil {
			continue // the way there changed under it
		}
		await(t, run)
		if err := run.Remove(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

// TestNothingMounted holds that the mounts of containers are not the machine's.
func TestNothingMounted(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "echo up; sleep 1000")
	spec.Mounts = []container.Mount{{Source: tempDir(t), Target: "/data"}}
	start(t, r, spec)
	awaitText(t, spec.Log, "up")
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), r.cfg.Dir) {
		t.Errorf("a container's mount is on the machine:\n%s", text)
	}
}
