// SPDX-License-Identifier: Apache-2.0

package testimage

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Python is Debian's Python of this machine with its standard library, as python3 and
// python in /usr/bin, and the shared libraries that it needs. Without one the test is
// skipped, or fails where CI is set.
func Python(t testing.TB) []File {
	t.Helper()
	lack := func(err error) {
		t.Helper()
		const lack = "Debian's Python is missing: install it with apt-get install python3"
		if os.Getenv("CI") != "" {
			t.Fatalf("%s (%v)", lack, err)
		}
		t.Skipf("%s (%v)", lack, err)
	}
	program, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		lack(err)
	}
	version := filepath.Base(program) // such as python3.11
	list, err := exec.Command("dpkg", "-L", version+"-minimal", "lib"+version+"-minimal", "lib"+version+"-stdlib").Output()
	if err != nil {
		lack(err)
	}
	files := []File{Link("usr/bin/python3", version), Link("usr/bin/python", version)}
	binaries := []string{program}
	for path := range strings.Lines(string(list)) {
		path = strings.TrimSpace(path)
		if path != program && !strings.HasPrefix(path, "/usr/lib/"+version+"/") {
			continue
		}
		if strings.HasSuffix(path, ".so") {
			binaries = append(binaries, path)
		}
		files = append(files, onDisk(t, path)...)
	}
	libraries, err := exec.Command("ldd", binaries...).Output()
	if err != nil {
		t.Fatalf("cannot list the libraries of %s: %v", program, err)
	}
	paths := regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(libraries), -1)
	slices.SortFunc(paths, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	for _, path := range slices.CompactFunc(paths, slices.Equal) {
		files = append(files, onDisk(t, path[1])...)
	}
	return files
}

// onDisk is a regular file of this machine, or what a link leads to, at its path; nothing
// for a directory.
func onDisk(t testing.TB, path string) []File {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil // packages list what an administrator may have removed
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return []File{{tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: int64(info.Mode().Perm())}, body}}
}
