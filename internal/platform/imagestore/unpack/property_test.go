// SPDX-License-Identifier: Apache-2.0

//go:build linux

package unpack

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// model is an image in memory: what each path is, as describe says it. Layers are applied to it by
// the rules of the image specification (github.com/opencontainers/image-spec layer.md).
type model map[string]string

func (m model) isDir(p string) bool { return p == "." || strings.HasPrefix(m[p], "dir ") }

// remove removes a path and what is below it.
func (m model) remove(p string) {
	maps.DeleteFunc(m, func(k, _ string) bool { return k == p || strings.HasPrefix(k, p+"/") })
}

// parents makes missing directories above p.
func (m model) parents(p string) {
	if d := path.Dir(p); d != "." && !m.isDir(d) {
		m.parents(d)
		m.remove(d)
		m[d] = "dir 755"
	}
}

// apply applies a layer: first it removes, then it adds.
func (m model) apply(layer []entry) {
	for _, e := range layer {
		base, d := path.Base(e.Name), path.Dir(e.Name)
		switch {
		case base == ".wh..wh..opq":
			maps.DeleteFunc(m, func(k, _ string) bool { return d == "." || strings.HasPrefix(k, d+"/") })
		case strings.HasPrefix(base, ".wh."):
			m.remove(path.Join(d, strings.TrimPrefix(base, ".wh.")))
		}
	}
	for _, e := range layer {
		base, name := path.Base(e.Name), path.Clean(e.Name)
		m.parents(name)
		if strings.HasPrefix(base, ".wh.") {
			continue
		}
		switch e.Typeflag {
		case '5':
			if !m.isDir(name) {
				m.remove(name)
			}
			m[name] = fmt.Sprintf("dir %o", e.Mode)
		case '2':
			m.remove(name)
			m[name] = "link " + e.Linkname
		case '1':
			target := m[path.Clean(e.Linkname)]
			m.remove(name)
			m[name] = target
		default:
			m.remove(name)
			m[name] = fmt.Sprintf("file %o %s", e.Mode, e.content)
		}
	}
}

// drawLayer draws a layer on top of an image. Names are few, so that they collide; nothing leads
// through symbolic links, of which layers below are not asked by any unpacker.
func drawLayer(t *rapid.T) []entry {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	var layer []entry
	own := make(model) // what the layer itself makes, without its whiteouts
	n := rapid.IntRange(0, 8).Draw(t, "entries")
	for range n {
		p := path.Join(rapid.SliceOfN(names, 1, 3).Draw(t, "path")...)
		// Only directories, and what the layer has not made, can have something below.
		bad := false
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			bad = bad || own[d] != "" && !own.isDir(d)
		}
		if bad {
			continue
		}
		var e entry
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			e = dir(p, int64(rapid.SampledFrom([]int{0o755, 0o700, 0o1777, 0o2775}).Draw(t, "mode")))
		case 1:
			e = symlink(p, rapid.SampledFrom([]string{"a", "/b", "../c"}).Draw(t, "target"))
		case 2:
			e = file(path.Join(path.Dir(p), ".wh."+path.Base(p)), "")
		case 3:
			e = file(path.Join(p, ".wh..wh..opq"), "")
			if own[p] != "" && !own.isDir(p) {
				continue
			}
		case 4: // a hard link to a file that is surely there, and stays
			var files []string
			for k, v := range own {
				if strings.HasPrefix(v, "file ") && k != p {
					files = append(files, k)
				}
			}
			if len(files) == 0 {
				continue
			}
			slices.Sort(files)
			target := rapid.SampledFrom(files).Draw(t, "target")
			if strings.HasPrefix(target, p+"/") {
				continue
			}
			e = hardlink(p, target)
		default:
			e = file(p, fmt.Sprintf("%d", rapid.IntRange(0, 999).Draw(t, "content")))
			e.Mode = int64(rapid.SampledFrom([]int{0o644, 0o4755, 0o600}).Draw(t, "mode"))
		}
		// A whiteout above what the layer itself made means what is below; entries that come after one
		// of the same name, too. The model removes first, so both are the same.
		own.apply(withoutWhiteouts(e))
		layer = append(layer, e)
	}
	return layer
}

func withoutWhiteouts(e entry) []entry {
	if strings.HasPrefix(path.Base(e.Name), ".wh.") {
		e = dir(path.Dir(e.Name), 0o755)
		if e.Name == "." {
			return nil
		}
	}
	return []entry{e}
}

// TestModel compares layers, unpacked and merged, with the model; with overlayfs itself where it can
// be mounted.
func TestModel(t *testing.T) {
	t.Parallel()
	n, overlay := 0, canMount(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := make(model)
		var layers [][]byte
		var drawn [][]entry
		for range rapid.IntRange(1, 5).Draw(rt, "layers") {
			l := drawLayer(rt)
			m.apply(l)
			layers = append(layers, stream(t, l...))
			drawn = append(drawn, l)
		}
		dirs := apply(t, layers...)
		if d := cmp.Diff(map[string]string(m), describe(t, dirs)); d != "" {
			for i, l := range drawn {
				for _, e := range l {
					rt.Logf("layer %d: %c %s %s %q %o", i, e.Typeflag, e.Name, e.Linkname, e.content, e.Mode)
				}
			}
			rt.Fatalf("(-model +unpacked):\n%s", d)
		}
		if n++; overlay && n%20 == 0 {
			overlay, err := mounted(dirs)
			if err != nil {
				rt.Fatal(err)
			}
			if d := cmp.Diff(map[string]string(m), overlay); d != "" {
				rt.Fatalf("(-model +overlayfs):\n%s", d)
			}
		}
	})
}

// TestSixtyLayers compares an image of as many layers with the model, and with overlayfs.
func TestSixtyLayers(t *testing.T) {
	t.Parallel()
	gen, mountable := rapid.Custom(drawLayer), canMount(t)
	for seed := range 3 {
		m := make(model)
		var layers [][]byte
		for i := range 60 {
			l := gen.Example(seed*60 + i)
			m.apply(l)
			layers = append(layers, stream(t, l...))
		}
		dirs := apply(t, layers...)
		if d := cmp.Diff(map[string]string(m), describe(t, dirs)); d != "" {
			t.Errorf("(-model +unpacked):\n%s", d)
		}
		if !mountable {
			continue
		}
		overlay, err := mounted(dirs)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]string(m), overlay); d != "" {
			t.Errorf("(-model +overlayfs):\n%s", d)
		}
	}
}

// mountEnv has the layers for a process of the test binary that mounts and describes them.
const mountEnv = "DIWAN_TEST_OVERLAY"

// userXattrEnv says that their marks are user.overlay.*.
const userXattrEnv = "DIWAN_TEST_USERXATTR"

func TestMain(m *testing.M) {
	if lower := os.Getenv(mountEnv); lower != "" {
		if err := describeMount(lower); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// canMount says whether overlayfs can be mounted here. With CI=true it must.
func canMount(t *testing.T) bool {
	t.Helper()
	_, err := mounted([]string{tempDir(t)})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Logf("layers are not compared with overlayfs: %v", err)
	}
	return err == nil
}

// mounted describes layers, top first, as overlayfs shows them. The mount is in a mount namespace of
// another process and goes with it.
func mounted(dirs []string) (map[string]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), mountEnv+"="+strings.Join(dirs, ":"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if !isHostRoot() {
		cmd.Env = append(cmd.Env, userXattrEnv+"=y")
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot mount the layers: %w: %s", err, stderr.String())
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[k] = v
	}
	return all, nil
}

func describeMount(lower string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	base := filepath.Dir(strings.Split(lower, ":")[0]) // the test's
	empty, target := filepath.Join(base, "empty"), filepath.Join(base, "target")
	for _, d := range []string{empty, target} {
		if err := os.Mkdir(d, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
	}
	// Mount options must fit on a page: short names lead to the layers.
	links, err := os.MkdirTemp(base, "links-")
	if err != nil {
		return err
	}
	if err := os.Chdir(links); err != nil {
		return err
	}
	o := "lowerdir="
	for i, dir := range strings.Split(lower, ":") {
		if err := os.Symlink(dir, fmt.Sprint(i)); err != nil {
			return err
		}
		o += fmt.Sprint(i) + ":"
	}
	o += empty // at least two are needed
	if os.Getenv(userXattrEnv) != "" {
		o += ",userxattr"
	}
	if err := unix.Mount("overlay", target, "overlay", 0, o); err != nil {
		return fmt.Errorf("overlay with %s: %w", o, err)
	}
	return filepath.WalkDir(target, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(target, p)
		if err != nil || rel == "." {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			fmt.Printf("%s\tdir %o\n", rel, st.Mode&0o7777)
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			fmt.Printf("%s\tlink %s\n", rel, to)
		default:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Printf("%s\tfile %o %s\n", rel, st.Mode&0o7777, b)
		}
		return nil
	})
}

// isHostRoot reports whether this is root, and not that of a user namespace.
func isHostRoot() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(b))
	return os.Geteuid() == 0 && err == nil && len(f) == 3 && f[2] == "4294967295"
}
