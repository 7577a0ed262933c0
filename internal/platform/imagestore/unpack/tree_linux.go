// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/imagestore/union"
)

const (
	// maxLinks is how many symbolic links a name may lead through, as in the kernel.
	maxLinks = 40
	// maxDepth bounds nested directories: whoever walks them keeps one descriptor open for each.
	maxDepth = 255
)

// tree is a directory that a layer is unpacked into. Nobody else writes it.
type tree struct {
	root      int
	userXattr bool
	// dirs are the directories below the root by their path without symbolic links, "" is the root.
	dirs map[string]*directory
	// opaque are those that hide what is below, whiteouts the files that do.
	opaque    map[string]bool
	whiteouts []string
	// The directory used last: consecutive entries are mostly in the same one.
	lastName string
	last     parent
	lastOK   bool
	stale    bool // something was replaced: names may mean another directory
}

// parent is an open directory. It stays open until the next call to tree.parent.
type parent struct {
	fd   int    // O_PATH
	path string // without symbolic links
}

// directory is what a directory of the layer is to become.
type directory struct {
	// implied: there is no entry for it.
	implied bool
	// fresh: the layer removes the one below.
	fresh bool
	attributes
}

func newTree(dir string, userXattr bool) (*tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &tree{root: fd, userXattr: userXattr, dirs: map[string]*directory{"": {implied: true}}, opaque: make(map[string]bool)}, nil
}

func (t *tree) close() {
	t.forget()
	unix.Close(t.root)
}

// forget closes the directory used last.
func (t *tree) forget() {
	if t.lastOK && t.last.fd != t.root {
		unix.Close(t.last.fd)
	}
	t.lastOK, t.stale = false, false
}

// parent opens the directory at name, which is clean, with symbolic links resolved inside the layer.
// With create, missing directories are made.
func (t *tree) parent(name string, create bool) (parent, error) {
	if t.lastOK && !t.stale && t.lastName == name {
		return t.last, nil
	}
	t.forget()
	p := parent{fd: t.root}
	var err error
	if name != "" {
		p.path = name
		p.fd, err = unix.Openat2(t.root, name, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != nil { // missing, a link, or a kernel without openat2
			p, err = t.walk(name, create)
		}
	}
	if err != nil {
		return parent{}, err
	}
	t.last, t.lastName, t.lastOK = p, name, true
	return p, nil
}

// walk is parent without its shortcuts.
func (t *tree) walk(name string, create bool) (_ parent, err error) {
	stack := []parent{{fd: t.root}}
	pop := func() parent {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return p
	}
	defer func() {
		for len(stack) > 1 {
			unix.Close(pop().fd)
		}
	}()
	links := 0
	for todo := strings.Split(name, "/"); len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		if c == "" || c == "." {
			continue
		}
		if c == ".." { // in a link's target; at the root it stays there, as in the kernel
			if len(stack) > 1 {
				unix.Close(pop().fd)
			}
			continue
		}
		if len(stack) > maxDepth {
			return parent{}, fmt.Errorf("its directories are nested more than %d deep", maxDepth)
		}
		dir := stack[len(stack)-1]
		full := path.Join(dir.path, c)
		fd, err := openDir(dir.fd, c)
		switch {
		case errors.Is(err, unix.ENOENT) && create:
			if err := t.mkdir(dir.fd, c, full); err != nil {
				return parent{}, err
			}
			fd, err = openDir(dir.fd, c)
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			var st unix.Stat_t
			if err := unix.Fstatat(dir.fd, c, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return parent{}, &fs.PathError{Op: "stat", Path: full, Err: err}
			}
			if st.Mode&unix.S_IFMT == unix.S_IFLNK {
				b := make([]byte, unix.PathMax)
				n, err := unix.Readlinkat(dir.fd, c, b)
				if err != nil {
					return parent{}, &fs.PathError{Op: "readlink", Path: full, Err: err}
				}
				if links++; links > maxLinks {
					return parent{}, &fs.PathError{Op: "open", Path: full, Err: unix.ELOOP}
				}
				target := string(b[:n])
				if strings.HasPrefix(target, "/") {
					for len(stack) > 1 {
						unix.Close(pop().fd)
					}
				}
				todo = append(strings.Split(target, "/"), todo...)
				continue
			}
			if !union.IsWhiteout(&st) {
				return parent{}, &fs.PathError{Op: "open", Path: full, Err: unix.ENOTDIR}
			}
			if !create {
				return parent{}, &fs.PathError{Op: "open", Path: full, Err: unix.ENOENT}
			}
			if err := t.replaceWhiteout(dir.fd, c, full); err != nil {
				return parent{}, err
			}
			fd, err = openDir(dir.fd, c)
		}
		if err != nil {
			return parent{}, &fs.PathError{Op: "open", Path: full, Err: err}
		}
		stack = append(stack, parent{fd: fd, path: full})
	}
	return pop(), nil
}

// exact opens the directory at a path that has no symbolic links. Where there is none, something
// replaced it.
func (t *tree) exact(name string) (int, error) {
	fd, err := unix.FcntlInt(uintptr(t.root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil || name == "" {
		return fd, err
	}
	for c := range strings.SplitSeq(name, "/") {
		next, err := openDir(fd, c)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// mkdir makes the directory name in dir, which is at full in the layer. It belongs to the process and
// is open to it until the layer is settled.
func (t *tree) mkdir(dir int, name, full string) error {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return &fs.PathError{Op: "mkdir", Path: full, Err: err}
	}
	t.dirs[full] = &directory{implied: true}
	return nil
}

// replaceWhiteout makes a directory where this layer removed what was there.
func (t *tree) replaceWhiteout(dir int, name, full string) error {
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return &fs.PathError{Op: "unlink", Path: full, Err: err}
	}
	if err := t.mkdir(dir, name, full); err != nil {
		return err
	}
	t.dirs[full].fresh = true
	return t.setOpaque(dir, name, full)
}

// setOpaque hides what lower layers have in a directory.
func (t *tree) setOpaque(dir int, name, full string) error {
	attr := "trusted.overlay.opaque"
	if t.userXattr {
		attr = "user.overlay.opaque"
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: full, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Fsetxattr(fd, attr, []byte("y"), 0); err != nil {
		return &fs.PathError{Op: "set " + attr + " of", Path: full, Err: err}
	}
	t.opaque[full] = true
	return nil
}

// isHidden reports whether a directory above name hides what is below.
func (t *tree) isHidden(name string) bool {
	for name != "" {
		if name = strings.TrimSuffix(name[:strings.LastIndexByte(name, '/')+1], "/"); t.opaque[name] {
			return true
		}
	}
	return false
}

func openDir(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// splitName cleans an entry's name. The root is "".
func splitName(name string) (dir, base string, err error) {
	if len(name) > maxPath {
		return "", "", errors.New("its name is too long")
	}
	if strings.ContainsRune(name, 0) {
		return "", "", errors.New("its name contains a zero byte")
	}
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", "", errors.New("its name leads out of the image")
	}
	if clean == "." {
		return "", "", nil
	}
	dir, base = path.Split(clean)
	return strings.TrimSuffix(dir, "/"), base, nil
}

// RemoveAll removes a directory tree, with directories that their owner cannot read.
func RemoveAll(name string) error {
	dir, base := path.Split(path.Clean(name))
	if dir == "" {
		dir = "."
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	if err := removeAt(fd, base); err != nil {
		return fmt.Errorf("cannot remove %s: %w", name, err)
	}
	return nil
}

// removeAt removes what is at name in the directory dir, if anything is.
func removeAt(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	var st unix.Stat_t
	switch statErr := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(statErr, unix.ENOENT):
		return nil // somebody else removes it, too
	case statErr != nil:
		return &fs.PathError{Op: "stat", Path: name, Err: statErr}
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	if st.Mode&0o700 != 0o700 {
		if err := unix.Fchmodat(dir, name, 0o700, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return &fs.PathError{Op: "chmod", Path: name, Err: err}
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		// What is removed while it is listed may hide other names: it is listed until nothing is left.
		names, err := f.Readdirnames(1024)
		if len(names) == 0 {
			if err != nil && err != io.EOF && !errors.Is(err, unix.ENOENT) {
				return err
			}
			break
		}
		for _, c := range names {
			if err := removeAt(int(f.Fd()), c); err != nil {
				return err
			}
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}
