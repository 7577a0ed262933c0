// SPDX-License-Identifier: Apache-2.0

package union

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may lead through, as in the kernel.
const maxLinks = 40

// View is a merge of layer directories. Its methods may be called concurrently. Paths are of the
// image, slash-separated; "" and "/" are its root.
type View struct {
	layers []int // descriptors of the directories, top first
	shared bool  // they belong to others
}

// New is the merge of open directories, top first. They remain the caller's, and stay open for as long
// as the view is used.
func New(dirs []*os.File) *View {
	v := &View{shared: true}
	for _, d := range dirs {
		v.layers = append(v.layers, int(d.Fd()))
	}
	return v
}

// Open opens the merge of dirs, of which the first is the top layer.
func Open(dirs []string) (*View, error) {
	v := new(View)
	for _, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EACCES) { // an image's root may be unreadable
			fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			v.Close()
			return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		v.layers = append(v.layers, fd)
	}
	return v, nil
}

// Close releases the view.
func (v *View) Close() error {
	if !v.shared {
		for _, fd := range v.layers {
			unix.Close(fd)
		}
	}
	v.layers = nil
	return nil
}

// Lstat describes the file at name. Symbolic links on the way are followed inside the image, one at
// the end is not.
func (v *View) Lstat(name string) (unix.Stat_t, error) { return v.stat("lstat", name, followParents) }

// Stat describes the file at name, with symbolic links followed inside the image.
func (v *View) Stat(name string) (unix.Stat_t, error) { return v.stat("stat", name, followAll) }

// LstatExact describes the file at name if no part of name is a symbolic link: overlayfs merges a
// directory with that one below it.
func (v *View) LstatExact(name string) (unix.Stat_t, error) {
	return v.stat("lstat", name, followNone)
}

func (v *View) stat(op, name string, how follow) (unix.Stat_t, error) {
	n, err := v.lookup(name, how)
	if err != nil {
		return unix.Stat_t{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	defer n.close()
	return n.stat, nil
}

// IsDir reports whether name is a directory, with symbolic links followed inside the image.
func (v *View) IsDir(name string) bool {
	st, err := v.Stat(name)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// Open opens the regular file at name for reading, with symbolic links followed inside the image.
// Anything else than a regular file is refused.
func (v *View) Open(name string) (*os.File, error) {
	n, err := v.lookup(name, followAll)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return n.open(name)
}

// OpenLink is Open, but the last part of name is not followed if it is a symbolic link.
func (v *View) OpenLink(name string) (*os.File, error) {
	n, err := v.lookup(name, followParents)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return n.open(name)
}

// ReadFile reads the regular file at name, which may have at most limit bytes.
func (v *View) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := v.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has more than %d bytes", limit)}
	}
	return b, err
}

// Readlink returns the target of the symbolic link at name.
func (v *View) Readlink(name string) (string, error) {
	n, err := v.lookup(name, followParents)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	defer n.close()
	if n.stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: unix.EINVAL}
	}
	return readlink(n.fds[0], n.name)
}

// ReadDir returns the names in the directory at name, sorted, with symbolic links followed inside the
// image.
func (v *View) ReadDir(name string) ([]string, error) {
	n, err := v.lookup(name, followAll)
	if err == nil && n.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		n.close()
		err = unix.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	defer n.close()
	seen := make(map[string]bool) // by name; false for what a layer above removed
	for _, fd := range n.fds {
		names, err := list(fd)
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		for _, c := range names {
			if _, ok := seen[c]; ok {
				continue
			}
			var st unix.Stat_t
			if err := unix.Fstatat(fd, c, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return nil, &fs.PathError{Op: "stat", Path: path.Join(name, c), Err: err}
			}
			seen[c] = !IsWhiteout(&st)
		}
	}
	var all []string
	for c, exists := range seen {
		if exists {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return all, nil
}

// Xattrs returns the extended attributes of the directory or regular file at name, without overlayfs's
// own. Symbolic links on the way are followed inside the image, one at the end has none.
func (v *View) Xattrs(name string) (map[string]string, error) {
	n, err := v.lookup(name, followParents)
	if err != nil {
		return nil, &fs.PathError{Op: "listxattr", Path: name, Err: err}
	}
	switch n.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		defer n.close()
		return xattrs(n.fds[0])
	case unix.S_IFREG:
		f, err := n.open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return xattrs(int(f.Fd()))
	default:
		n.close()
		return nil, nil
	}
}

// IsWhiteout reports whether overlayfs takes a file for a whiteout.
func IsWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// IsOverlayXattr reports whether an extended attribute belongs to overlayfs.
func IsOverlayXattr(name string) bool {
	return strings.HasPrefix(name, "trusted.overlay.") || strings.HasPrefix(name, "user.overlay.")
}

// follow says which symbolic links of a path are resolved.
type follow int

const (
	followNone follow = iota
	followParents
	followAll
)

// node is a file of the merge. It owns its descriptors but for those of the root.
type node struct {
	stat unix.Stat_t
	// fds are, for a directory, the directories that merge, top first; for anything else the one that
	// contains it.
	fds  []int
	name string // of the file in fds[0], unless it is a directory
	root bool
}

func (n *node) close() {
	if !n.root {
		for _, fd := range n.fds {
			unix.Close(fd)
		}
	}
	n.fds = nil
}

// open opens a regular file and closes the node.
func (n *node) open(name string) (*os.File, error) {
	defer n.close()
	if n.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	fd, err := unix.Openat(n.fds[0], n.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (v *View) rootNode() (*node, error) {
	n := &node{root: true}
	for i, fd := range v.layers {
		if i == 0 {
			if err := unix.Fstat(fd, &n.stat); err != nil {
				return nil, err
			}
		}
		n.fds = append(n.fds, fd)
		if opaque, err := isOpaque(fd); err != nil {
			return nil, err
		} else if opaque {
			break
		}
	}
	if len(n.fds) == 0 {
		return nil, unix.ENOENT
	}
	return n, nil
}

// lookup walks to name. The caller closes the node.
func (v *View) lookup(name string, how follow) (*node, error) {
	cur, err := v.rootNode()
	if err != nil {
		return nil, err
	}
	var names []string // of the directories on the way to cur
	todo := strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		if c == "" || c == "." {
			continue
		}
		if c == ".." {
			// Only one directory is open at a time: an image may nest them deep in many layers.
			names = names[:max(len(names)-1, 0)]
			cur.close()
			if cur, err = v.directory(names); err != nil {
				return nil, err
			}
			continue
		}
		last := !slices.ContainsFunc(todo, func(s string) bool { return s != "" && s != "." })
		n, err := cur.child(c)
		if err != nil {
			cur.close()
			return nil, err
		}
		switch kind := n.stat.Mode & unix.S_IFMT; {
		case kind == unix.S_IFDIR:
			cur.close()
			cur = n
			names = append(names, c)
		case kind == unix.S_IFLNK && how != followNone && (how == followAll || !last):
			target, err := readlink(n.fds[0], n.name)
			n.close()
			if links++; err == nil && links > maxLinks {
				err = unix.ELOOP
			}
			if err != nil {
				cur.close()
				return nil, err
			}
			if strings.HasPrefix(target, "/") {
				names = nil
				cur.close()
				if cur, err = v.rootNode(); err != nil {
					return nil, err
				}
			}
			todo = append(strings.Split(target, "/"), todo...)
		case !last:
			n.close()
			cur.close()
			return nil, unix.ENOTDIR
		default:
			cur.close()
			return n, nil
		}
	}
	return cur, nil
}

// directory opens the directory at names, of which none is a symbolic link.
func (v *View) directory(names []string) (*node, error) {
	cur, err := v.rootNode()
	for _, c := range names {
		if err != nil {
			return nil, err
		}
		var n *node
		n, err = cur.child(c)
		cur.close()
		cur = n
	}
	return cur, err
}

// child looks up a name in a directory.
func (n *node) child(name string) (*node, error) {
	c := &node{name: name}
	found := false
	for _, dir := range n.fds {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			c.close()
			return nil, err
		}
		if IsWhiteout(&st) {
			break
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if found { // a directory above hides it
				break
			}
			fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			c.stat, c.fds = st, []int{fd}
			return c, nil
		}
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EACCES) {
			fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			c.close()
			return nil, err
		}
		if !found {
			c.stat, found = st, true
		}
		c.fds = append(c.fds, fd)
		if opaque, err := isOpaque(fd); err != nil {
			c.close()
			return nil, err
		} else if opaque {
			break
		}
	}
	if !found {
		c.close()
		return nil, unix.ENOENT
	}
	return c, nil
}

// isOpaque says whether a directory hides those below it. One that only its path can be opened of,
// since it is unreadable, cannot be asked; it is taken to merge.
func isOpaque(fd int) (bool, error) {
	var b [2]byte
	for _, name := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		n, err := unix.Fgetxattr(fd, name, b[:])
		switch {
		case err == nil:
			if n == 1 && b[0] == 'y' {
				return true, nil
			}
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EPERM),
			errors.Is(err, unix.EBADF), errors.Is(err, unix.ERANGE), errors.Is(err, unix.EACCES):
		default:
			return false, err
		}
	}
	return false, nil
}

func readlink(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// list returns the names in a directory, of which the descriptor keeps its position.
func list(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

func xattrs(fd int) (map[string]string, error) {
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EBADF) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if size, err = unix.Flistxattr(fd, b); err != nil {
		return nil, err
	}
	all := make(map[string]string)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(b[:size]), "\x00"), "\x00") {
		if name == "" || IsOverlayXattr(name) {
			continue
		}
		value := make([]byte, 64<<10) // the kernel's limit
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			continue
		}
		all[name] = string(value[:n])
	}
	return all, nil
}
