// SPDX-License-Identifier: Apache-2.0

//go:build linux

package union

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// layers makes two layers and a directory beside them, and opens their merge.
func layers(t *testing.T) (*View, string) {
	t.Helper()
	base := t.TempDir()
	top, low := filepath.Join(base, "top"), filepath.Join(base, "low")
	write := func(dir, name, content string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(dir, name, target string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.Symlink(target, p)); err != nil {
			t.Fatal(err)
		}
	}
	write(base, "outside", "outside")
	write(low, "a", "low")
	write(low, "merged/low", "low")
	write(low, "opaque/low", "low")
	write(low, "gone/low", "low")
	write(low, "file/low", "low")
	write(low, "real/x", "x")
	write(top, "a", "top")
	write(top, "merged/top", "top")
	write(top, "opaque/top", "top")
	write(top, "file", "file")
	for name, target := range map[string]string{
		"abs": "/merged/low", "up": "../../../../outside", "rel": "real/../merged/./low", "dir": "merged", "loop": "loop",
		"long": strings.Repeat("real/../", 200) + "a", "nowhere": "/not/there", "procfs": "/proc/self/root/etc/passwd",
	} {
		link(top, name, target)
	}
	opaque := filepath.Join(top, "opaque")
	err := unix.Setxattr(opaque, "trusted.overlay.opaque", []byte("y"), 0)
	if errors.Is(err, unix.EPERM) {
		err = unix.Setxattr(opaque, "user.overlay.opaque", []byte("y"), 0)
	}
	if err := errors.Join(err,
		unix.Setxattr(filepath.Join(top, "a"), "user.color", []byte("blue"), 0),
		unix.Mknod(filepath.Join(top, "gone"), unix.S_IFCHR, 0), unix.Mkfifo(filepath.Join(top, "fifo"), 0o644)); err != nil {
		t.Fatal(err)
	}
	v, err := Open([]string{top, low})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v, base
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	v, _ := layers(t)
	for name, want := range map[string]string{
		"a": "top", "/a": "top", "./a/": "top", "../../a": "top", "merged/low": "low", "merged/top": "top", "opaque/top": "top", "file": "file",
		"abs": "low", "rel": "low", "dir/top": "top", "dir/../a": "top", "long": "top", "merged/../opaque/../a": "top",
	} {
		if b, err := v.ReadFile(name, 10); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v; want %q", name, b, err, want)
		}
	}
	for name, want := range map[string]error{
		"opaque/low": unix.ENOENT, "gone": unix.ENOENT, "gone/low": unix.ENOENT, "file/low": unix.ENOTDIR, "up": unix.ENOENT, "loop": unix.ELOOP,
		"nowhere": unix.ENOENT, "procfs": unix.ENOENT, "a/b": unix.ENOTDIR, "none/../a": unix.ENOENT,
	} {
		if b, err := v.ReadFile(name, 10); !errors.Is(err, want) {
			t.Errorf("%s is %q, %v; want %v", name, b, err, want)
		}
	}
	for _, name := range []string{"fifo", "merged", "/", ""} {
		if _, err := v.ReadFile(name, 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.ReadFile("a", 2); err == nil || !strings.Contains(err.Error(), "more than 2 bytes") {
		t.Errorf("a bound was not kept: %v", err)
	}
}

func TestDirectories(t *testing.T) {
	t.Parallel()
	v, _ := layers(t)
	for name, want := range map[string][]string{
		"merged": {"low", "top"}, "opaque": {"top"}, "dir": {"low", "top"},
		"": {"a", "abs", "dir", "fifo", "file", "long", "loop", "merged", "nowhere", "opaque", "procfs", "real", "rel", "up"},
	} {
		if got, err := v.ReadDir(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q contains %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := v.ReadDir("a"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a file as a directory: %v", err)
	}
	for name, want := range map[string]bool{"merged": true, "dir": true, "a": false, "gone": false, "abs": false, "/": true} {
		if v.IsDir(name) != want {
			t.Errorf("that %q is a directory is not %v", name, want)
		}
	}
	if _, err := v.LstatExact("dir/top"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a link was followed: %v", err)
	}
	if st, err := v.Lstat("dir"); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		t.Errorf("the link is %o, %v", st.Mode, err)
	}
	if target, err := v.Readlink("dir"); err != nil || target != "merged" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if _, err := v.Readlink("a"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a file as a link: %v", err)
	}
	if x, err := v.Xattrs("a"); err != nil || x["user.color"] != "blue" {
		t.Errorf("the attributes are %q, %v", x, err)
	}
	if x, err := v.Xattrs("opaque"); err != nil || len(x) != 0 {
		t.Errorf("overlayfs's attributes are shown: %q, %v", x, err)
	}
}

// TestDescriptors: however a path is made, what was opened is closed.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	v, base := layers(t)
	// Those of this test's own directories, since others run at the same time.
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, base+"/") {
				n++
			}
		}
		return n
	}
	before := open()
	for _, name := range []string{"a", "abs", "up", "loop", "long", "gone/x", "file/x", "merged/..", "dir/../dir/low", "fifo", "", "nowhere/x"} {
		v.ReadFile(name, 10)
		v.Stat(name)
		v.Lstat(name)
		v.LstatExact(name)
		v.ReadDir(name)
		v.Readlink(name)
		v.Xattrs(name)
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
