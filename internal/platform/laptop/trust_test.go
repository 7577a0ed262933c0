// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFaultOfDirectory(t *testing.T) {
	t.Parallel()
	root, alice, inside := identity{}, identity{user: 1000, group: 1000}, identity{unknown: 65534}
	for _, tc := range []struct {
		reason       string
		me           identity
		mode         fs.FileMode
		owner, group uint32
		want         string
	}{
		{"one's own", alice, 0o700, 1000, 1000, ""},
		{"others may read the names", alice, 0o755, 1000, 1000, ""},
		{"root's, as / is", alice, 0o755, 0, 0, ""},
		{"root does not trust a user", root, 0o700, 1000, 1000, "user 1000"},
		{"nor do users each other", alice, 0o755, 1001, 1000, "user 1001"},
		{"everybody's", root, 0o777, 0, 0, "every user"},
		{"in /tmp nobody can replace what is another's", alice, 0o777 | fs.ModeSticky, 0, 0, ""},
		{"but in the /tmp of a user that user can", root, 0o777 | fs.ModeSticky, 1000, 0, "user 1000"},
		{"a group's", root, 0o775, 0, 50, "group 50"},
		{"the group that is the user's alone", alice, 0o775, 1000, 1000, ""},
		{"is not that of root", root, 0o775, 0, 1000, "group 1000"},
		{"a primary group that users share", identity{user: 1000, group: 100}, 0o775, 1000, 100, "group 100"},
		{"the group of root", identity{user: 1000, group: 0}, 0o775, 1000, 0, ""},
		{"in a user namespace root is not known", inside, 0o755, 65534, 65534, ""},
		{"which says nothing of who may write", inside, 0o777, 65534, 65534, "every user"},
		{"outside of one that is a user", root, 0o755, 65534, 65534, "user 65534"},
	} {
		if got := tc.me.fault(tc.mode, tc.owner, tc.group); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestHomeOfOthers has homes that others can change, each in a directory that is
// this user's.
func TestHomeOfOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		make   func(dir string) (home string, err error)
		want   string // in the error, after the directory
		root   bool   // only root can make this
	}{
		"Own":     {"a home of one's own", func(dir string) (string, error) { return dir + "/home", nil }, "", false},
		"Open":    {"everybody writes to it", func(dir string) (string, error) { return dir + "/home", mkdir(dir+"/home", 0o777) }, "/home can be written to by every user", false},
		"Below":   {"everybody can replace it", func(dir string) (string, error) { return dir + "/open/a/home", mkdir(dir+"/open", 0o777) }, "/open can be written to", false},
		"Sticky":  {"nobody can, as in /tmp", func(dir string) (string, error) { return dir + "/tmp/home", mkdir(dir+"/tmp", 0o777|fs.ModeSticky) }, "", false},
		"Link":    {"the way to it counts", func(dir string) (string, error) { return link(dir, "/open/link", "../home") }, "/open can be written to", false},
		"Target":  {"and what a link leads to", func(dir string) (string, error) { return link(dir, "/link", "open/home") }, "/open can be written to", false},
		"Others":  {"it is another user's", func(dir string) (string, error) { return chown(dir+"/home", dir+"/home") }, "/home belongs to user 12345", true},
		"Other's": {"the user whose directory it is in can rename it", func(dir string) (string, error) { return chown(dir+"/user", dir+"/user/home") }, "/user belongs to user 12345", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.root && os.Getuid() != 0 {
				t.Skip("only root can give directories away")
			}
			dir := t.TempDir()
			home, err := tc.make(dir)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Home(home).lock()
			if err == nil {
				defer func() { _ = l.Unlock() }()
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), dir+tc.want) || !strings.Contains(err.Error(), "--home")):
				t.Errorf("%s: got %v, want an error with %q and a remedy", tc.reason, err, dir+tc.want)
			}
		})
	}
}

func mkdir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, mode) // despite the umask
}

// chown makes a directory that is another user's.
func chown(dir, home string) (string, error) {
	if err := mkdir(dir, 0o755); err != nil {
		return "", err
	}
	return home, os.Chown(dir, 12345, 12345)
}

// link makes a directory home and one open to everybody with one, and a link.
func link(dir, from, to string) (string, error) {
	for path, mode := range map[string]fs.FileMode{"/home": 0o700, "/open": 0o777} {
		if err := mkdir(dir+path, mode); err != nil {
			return "", err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "open", "home"), 0o700); err != nil {
		return "", err
	}
	return dir + from, os.Symlink(to, dir+from)
}
