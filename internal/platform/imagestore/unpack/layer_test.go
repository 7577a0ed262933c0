// SPDX-License-Identifier: Apache-2.0

//go:build linux

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/imagestore/union"
)

var epoch = time.Unix(1_700_000_000, 123_000_000)

// entry is an entry of a layer.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch}, content}
}

func dir(name string, mode int64) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: epoch}}
}

func symlink(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: epoch}}
}

func hardlink(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, ModTime: epoch}}
}

func stream(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Format = tar.FormatPAX
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// options are those that a store would choose for this process.
func options(recipe io.Writer) Options {
	root := isHostRoot()
	return Options{UserXattr: !root, KeepOwners: root, Devices: root, Budget: NewBudget(1<<30, 1<<20), Recipe: recipe}
}

// tempDir is a directory that is removed even if its contents cannot be read.
func tempDir(t testing.TB) string {
	t.Helper()
	d := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(d, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := RemoveAll(d); err != nil {
			t.Error(err)
		}
	})
	return d
}

// apply unpacks layers, lowest first, and returns their directories, top first.
func apply(t testing.TB, layers ...[]byte) []string {
	t.Helper()
	var dirs []string
	for i, l := range layers {
		d := tempDir(t)
		var recipe bytes.Buffer
		u, err := Layer(t.Context(), d, bytes.NewReader(l), options(&recipe))
		if err != nil {
			t.Fatalf("layer %d: %v", i, err)
		}
		var below *union.View
		if len(dirs) > 0 {
			if below, err = union.Open(dirs); err != nil {
				t.Fatal(err)
			}
		}
		report, err := u.Settle(below)
		if below != nil {
			below.Close()
		}
		if err != nil {
			t.Fatalf("layer %d: %v", i, err)
		}
		if report.Exact {
			var again bytes.Buffer
			if err := Replay(t.Context(), &again, &recipe, d); err != nil {
				t.Fatalf("layer %d: %v", i, err)
			}
			if !bytes.Equal(again.Bytes(), l) {
				t.Fatalf("layer %d: written again, it differs", i)
			}
		}
		dirs = append([]string{d}, dirs...)
	}
	return dirs
}

// describe lists everything in a view: type, mode and content by path.
func describe(t testing.TB, dirs []string) map[string]string {
	t.Helper()
	v, err := union.Open(dirs)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	all := make(map[string]string)
	var walk func(name string)
	walk = func(name string) {
		st, err := v.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%o", st.Mode&0o7777)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			s = "dir " + s
			names, err := v.ReadDir(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				walk(path.Join(name, n))
			}
		case unix.S_IFLNK:
			target, err := v.Readlink(name)
			if err != nil {
				t.Fatal(err)
			}
			s = "link " + target
		case unix.S_IFREG:
			f, err := v.OpenLink(name)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
			s = "file " + s + " " + string(b)
		default:
			s = fmt.Sprintf("node %o", st.Mode)
		}
		if name != "" {
			all[name] = s
		}
	}
	walk("")
	return all
}

func TestHandMadeLayers(t *testing.T) {
	t.Parallel()
	setuid := file("su", "su")
	setuid.Mode = 0o4755
	owned := file("owned", "x")
	owned.Uid, owned.Gid = 1234, 1235
	null := entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "null", Mode: 0o666, Devmajor: 1, Devminor: 3, ModTime: epoch}}
	dirs := apply(t,
		stream(t, file("a", "one"), hardlink("b", "a"), dir("d", 0o755), file("d/low", "low"), setuid, owned, null),
		stream(t, file("a", "two"), file("d/new", "new"), file("d/.wh..wh..opq", "")))
	got := describe(t, dirs)
	want := map[string]string{
		"a": "file 644 two", "b": "file 644 one", "d": "dir 755", "d/new": "file 644 new", "su": "file 4755 su", "owned": "file 644 x",
	}
	if isHostRoot() {
		want["null"] = "node 20666"
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dirs[1], "owned"), &st); err != nil || st.Uid != 1234 || st.Gid != 1235 {
			t.Errorf("the owner is %d:%d, %v", st.Uid, st.Gid, err)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	info, err := os.Stat(filepath.Join(dirs[1], "d"))
	if err != nil || !info.ModTime().Equal(epoch) {
		t.Errorf("the time of the directory is %v, %v", info.ModTime(), err)
	}
}

func TestSemantics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		layers [][]entry
		want   map[string]string
	}{
		"a directory without an entry looks like the one below": {
			[][]entry{{dir("tmp", 0o1777)}, {file("tmp/x", "x")}},
			map[string]string{"tmp": "dir 1777", "tmp/x": "file 644 x"},
		},
		"a hard link to a file below is a copy of it": {
			[][]entry{{file("a", "one")}, {hardlink("b", "a"), hardlink("c", "a"), file("a", "two")}},
			map[string]string{"a": "file 644 two", "b": "file 644 one", "c": "file 644 one"},
		},
		"a whiteout hides what is below": {
			[][]entry{{file("d/a", "1"), file("d/b", "1")}, {file("d/.wh.a", "")}},
			map[string]string{"d": "dir 755", "d/b": "file 644 1"},
		},
		"a whiteout does not hide its own layer": {
			[][]entry{{file("a", "1")}, {file("a", "2"), file(".wh.a", "")}},
			map[string]string{"a": "file 644 2"},
		},
		"a directory that is removed and made again is empty": {
			[][]entry{{file("d/low", "1")}, {file(".wh.d", ""), dir("d", 0o700), file("d/new", "2")}},
			map[string]string{"d": "dir 700", "d/new": "file 644 2"},
		},
		"in any order": {
			[][]entry{{file("d/low", "1")}, {dir("d", 0o700), file("d/new", "2"), file(".wh.d", "")}},
			map[string]string{"d": "dir 700", "d/new": "file 644 2"},
		},
		"and without an entry for it": {
			[][]entry{{file("d/low", "1")}, {file(".wh.d", ""), file("d/new", "2")}},
			map[string]string{"d": "dir 755", "d/new": "file 644 2"},
		},
		"a file replaces a directory, and that a file": {
			[][]entry{{file("d/low", "1")}, {file("d", "file")}, {dir("d", 0o755)}},
			map[string]string{"d": "dir 755"},
		},
		"a later entry of a layer counts": {
			[][]entry{{file("x", "1"), dir("x", 0o755), file("x/y", "2"), symlink("x", "z"), file("x", "3")}},
			map[string]string{"x": "file 644 3"},
		},
		"a link is followed inside the layer": {
			[][]entry{{dir("usr/lib", 0o755), symlink("lib", "usr/lib"), file("lib/a", "1"), symlink("abs", "/usr"), file("abs/b", "2"), symlink("up", "../../.."), file("up/c", "3")}},
			map[string]string{"usr": "dir 755", "usr/lib": "dir 755", "lib": "link usr/lib", "usr/lib/a": "file 644 1", "abs": "link /usr", "usr/b": "file 644 2", "up": "link ../../..", "c": "file 644 3"},
		},
		"AUFS's bookkeeping is left out": {
			[][]entry{{file(".wh..wh.aufs", ""), file(".wh..wh.plnk/1.2", ""), file("a", "1")}},
			map[string]string{"a": "file 644 1", ".wh..wh.plnk": "dir 755", ".wh..wh.plnk/1.2": "file 644 "},
		},
		"opaque at the root": {
			[][]entry{{file("a", "1")}, {file(".wh..wh..opq", ""), file("b", "2")}},
			map[string]string{"b": "file 644 2"},
		},
		"a device 0/0 is no whiteout": {
			[][]entry{{file("a", "1")}, {{Header: tar.Header{Typeflag: tar.TypeChar, Name: "a"}}}},
			map[string]string{"a": "file 644 1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var layers [][]byte
			for _, l := range test.layers {
				layers = append(layers, stream(t, l...))
			}
			if d := cmp.Diff(test.want, describe(t, apply(t, layers...))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestHostileStreams: each is an error, or confined, and nothing outside changes.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	raw := func(edit func(b []byte)) []byte {
		var plain bytes.Buffer
		writeRaw(&plain, '0', "a", []byte("content"))
		b := append(plain.Bytes(), make([]byte, 1024)...)
		edit(b)
		// The checksum of the header.
		copy(b[148:156], "        ")
		sum := 0
		for _, c := range b[:512] {
			sum += int(c)
		}
		copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return b
	}
	huge := file("huge", "")
	huge.PAXRecords = map[string]string{"GNU.sparse.major": "1"}
	var many []entry
	for i := range 1100 {
		many = append(many, file(fmt.Sprint(i), ""))
	}
	tests := map[string]struct {
		stream   []byte
		contains string // of the error; "" is none
	}{
		"dot dot":                        {stream(t, file("../evil", "evil")), "leads out of the image"},
		"dot dot inside":                 {stream(t, file("a/../../evil", "evil")), "leads out of the image"},
		"whiteout of dot dot":            {stream(t, file("d/.wh...", "")), "not a whiteout's"},
		"whiteout of nothing":            {stream(t, file("d/.wh.", "")), "not a whiteout's"},
		"absolute link":                  {stream(t, symlink("esc", "/outside"), file("esc/f", "evil")), ""},
		"link up":                        {stream(t, symlink("esc", "../../../../../outside"), file("esc/f", "evil")), ""},
		"link to itself":                 {stream(t, symlink("esc", "esc"), file("esc/f", "evil")), "symbolic links"},
		"hard link out":                  {stream(t, hardlink("h", "../outside/secret")), "leads out of the image"},
		"hard link out by a link":        {stream(t, symlink("esc", "../../outside"), hardlink("h", "esc/secret")), "no such file"},
		"hard link to a directory":       {stream(t, dir("d", 0o755), hardlink("h", "d")), "is a directory"},
		"hard link to nothing":           {stream(t, hardlink("h", "nothing")), "no such file"},
		"hard link to itself":            {stream(t, file("h", "x"), hardlink("h", "h")), ""},
		"hard link to a whiteout":        {stream(t, file(".wh.x", ""), hardlink("h", "x")), "was removed"},
		"hard link to a whiteout's name": {stream(t, hardlink("h", ".wh.x")), "cannot be linked"},
		"file as a directory":            {stream(t, file("f", "x"), file("f/g", "y")), "not a directory"},
		"root as a file":                 {stream(t, symlink(".", "x")), "root must be a directory"},
		"overlay attributes": {stream(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o644, ModTime: epoch, PAXRecords: map[string]string{
			"SCHILY.xattr.trusted.overlay.redirect": "/outside", "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.x": "1", "SCHILY.xattr.security.selinux": "x", "SCHILY.xattr.user.fine": "1",
		}}}), ""},
		"negative size":      {raw(func(b []byte) { copy(b[124:136], "-0000000007\x00") }), "tar stream"},
		"negative size b64":  {raw(func(b []byte) { copy(b[124:136], bytes.Repeat([]byte{0xff}, 12)) }), "tar stream"},
		"8 exabytes":         {raw(func(b []byte) { copy(b[124:136], append([]byte{0x80, 0, 0, 0, 0x70}, make([]byte, 7)...)) }), "larger than permitted"},
		"owner out of range": {stream(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "f", Uid: 1 << 32}}), "out of range"},
		"long name":          {stream(t, file(strings.Repeat("a", 300), "")), "file name too long"},
		"long path":          {stream(t, file(strings.Repeat("a/", 2100)+"f", "")), "too long"},
		"deep":               {stream(t, file(strings.Repeat("a/", 300)+"f", "")), "nested more than"},
		"not tar":            {bytes.Repeat([]byte("hello"), 1000), "tar stream"},
		"cut off":            {stream(t, file("f", strings.Repeat("x", 2000)))[:1500], "unexpected EOF"},
		"sparse bomb":        {sparseBomb(1 << 60), "larger than permitted"},
		"1100 entries":       {stream(t, many...), "more than 1000 files"},
		"too many bytes":     {stream(t, file("a", strings.Repeat("x", 600<<10)), file("b", strings.Repeat("x", 600<<10))), "larger than permitted"},
		"endless end":        {append(stream(t, file("a", "")), make([]byte, 10<<20)...), "larger than permitted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := tempDir(t)
			outside, root := filepath.Join(base, "outside"), filepath.Join(base, "x", "y", "root")
			if err := errors.Join(os.MkdirAll(root, 0o700), os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600)); err != nil {
				t.Fatal(err)
			}
			o := options(nil)
			o.Budget = NewBudget(1<<20, 1000)
			u, err := Layer(t.Context(), root, bytes.NewReader(test.stream), o)
			if err == nil {
				_, err = u.Settle(nil)
			}
			switch {
			case test.contains == "" && err != nil:
				t.Errorf("the error is %v", err)
			case test.contains != "" && (err == nil || !strings.Contains(err.Error(), test.contains)):
				t.Errorf("the error is %v, and should contain %q", err, test.contains)
			}
			got := make(map[string]bool)
			filepath.WalkDir(base, func(p string, d os.DirEntry, err error) error {
				if rel, _ := filepath.Rel(base, p); !strings.HasPrefix(rel, "x/y/root/") {
					got[rel] = true
				}
				return nil
			})
			if want := []string{".", "outside", "outside/secret", "x", "x/y", "x/y/root"}; !cmp.Equal(slices.Sorted(maps.Keys(got)), want) {
				t.Errorf("outside the layer there is %q", slices.Sorted(maps.Keys(got)))
			}
			if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "secret" {
				t.Errorf("the secret is %q, %v", b, err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(outside, "secret"), &st); err != nil || st.Nlink != 1 {
				t.Errorf("the secret has %d links, %v", st.Nlink, err)
			}
			if f, err := os.Open(filepath.Join(root, "f")); err == nil && name == "overlay attributes" {
				defer f.Close()
				b := make([]byte, 1024)
				n, err := unix.Flistxattr(int(f.Fd()), b)
				if err != nil || string(b[:n]) != "user.fine\x00" {
					t.Errorf("the attributes are %q, %v", b[:n], err)
				}
			}
		})
	}
}

// sparseBomb is a stream of a few bytes with a file of size bytes.
func sparseBomb(size int64) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	data := fmt.Sprintf("1\n%d\n0\n", size)
	data += strings.Repeat("\x00", 512-len(data))
	records := pax("GNU.sparse.major", "1") + pax("GNU.sparse.minor", "0") + pax("GNU.sparse.name", "bomb") + pax("GNU.sparse.realsize", fmt.Sprint(size))
	writeRaw(&b, 'x', "x", []byte(records))
	writeRaw(&b, '0', "GNUSparseFile.0/bomb", []byte(data))
	w.Close()
	return b.Bytes()
}

func pax(key, value string) string {
	for n := 1; ; n++ {
		if s := fmt.Sprintf("%d %s=%s\n", n, key, value); len(s) == n {
			return s
		}
	}
}

func writeRaw(b *bytes.Buffer, kind byte, name string, data []byte) {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x00")
	copy(h[108:], "0000000\x00")
	copy(h[116:], "0000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x00", len(data)))
	copy(h[136:], "00000000000\x00")
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	b.Write(h)
	b.Write(data)
	b.Write(make([]byte, (512-len(data)%512)%512))
}

// TestUnreadable: directories and files that their owner cannot read are unpacked, and removed.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	secret := file("d/secret", "s")
	secret.Mode = 0
	d := tempDir(t)
	u, err := Layer(t.Context(), d, bytes.NewReader(stream(t, dir("d", 0), secret, dir("d/e", 0o111), file("d/e/f", "f"))), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Settle(nil); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(d, "d"))
	if err != nil || info.Mode().Perm() != 0 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if err := RemoveAll(filepath.Join(d, "d")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(d, "d")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was not removed")
	}
}

func TestHoles(t *testing.T) {
	t.Parallel()
	dirs := apply(t, stream(t, file("zero", strings.Repeat("\x00", 4<<20)), file("end", "x"+strings.Repeat("\x00", 1<<20)+"y")))
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dirs[0], "zero"), &st); err != nil || st.Size != 4<<20 || st.Blocks > 16 {
		t.Errorf("the size is %d, with %d blocks, %v", st.Size, st.Blocks, err)
	}
}

func TestLayerEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Layer(ctx, tempDir(t), bytes.NewReader(stream(t, file("a", "1"))), options(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzLayer(f *testing.F) {
	f.Add(stream(f, file("a", "one"), hardlink("b", "a"), dir("d", 0o755), symlink("s", "/d"), file("s/x", "y"), file("d/.wh..wh..opq", ""), file(".wh.a", "")))
	f.Add(sparseBomb(1 << 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		base := tempDir(t)
		root := filepath.Join(base, "root")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		var recipe bytes.Buffer
		o := options(&recipe)
		o.Devices = false
		o.Budget = NewBudget(1<<20, 1000)
		u, err := Layer(t.Context(), root, bytes.NewReader(data), o)
		if err == nil {
			var r Report
			if r, err = u.Settle(nil); err == nil && r.Exact {
				var again bytes.Buffer
				if err := Replay(t.Context(), &again, &recipe, root); err != nil || !bytes.Equal(again.Bytes(), data) {
					t.Errorf("written again, it differs: %v", err)
				}
			}
		}
		entries, err := os.ReadDir(base)
		if err != nil || len(entries) != 1 {
			t.Errorf("something was made outside: %v, %v", entries, err)
		}
	})
}
