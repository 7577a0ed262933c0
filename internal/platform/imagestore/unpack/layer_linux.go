// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/imagestore/union"
)

const (
	whiteoutPrefix = ".wh."
	auxPrefix      = ".wh..wh."
	opaqueMarker   = ".wh..wh..opq"
	xattrPrefix    = "SCHILY.xattr."
)

// attributes are what files have besides their content.
type attributes struct {
	mode   uint32 // permissions with setuid, setgid and sticky bits
	uid    int
	gid    int
	mtime  time.Time
	xattrs map[string]string
}

// link is a hard link to a file that the layer does not have.
type link struct {
	path   string // without symbolic links
	target string
}

// Unpacked is a layer that was unpacked but for what depends on lower layers.
type Unpacked struct {
	dir     string
	o       Options
	tree    *tree
	pending []link
	report  Report
	exact   bool
}

// unpacker unpacks one stream.
type unpacker struct {
	t       *tree
	o       Options
	rec     *recorder
	pending []link
	report  Report
	exact   bool
	buf     []byte
}

// Layer unpacks the uncompressed tar stream r into the empty directory dir, and reads r to its end.
// The layer is complete after Settle. On errors dir holds garbage; errors about what the stream
// contains name the entry.
func Layer(ctx context.Context, dir string, r io.Reader, o Options) (*Unpacked, error) {
	t, err := newTree(dir, o.UserXattr)
	if err != nil {
		return nil, err
	}
	defer t.close()
	u := &unpacker{t: t, o: o, exact: true, buf: make([]byte, 128<<10)}
	u.rec = &recorder{r: o.Budget.Reader(r), w: o.Recipe}
	tr := tar.NewReader(u.rec)
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the layer's tar stream: %w", err)
		}
		u.report.Entries++
		if err := o.Budget.takeEntry(); err != nil {
			return nil, err
		}
		if err := u.entry(ctx, hdr, tr); err != nil {
			return nil, fmt.Errorf("cannot unpack %.200q: %w", hdr.Name, err)
		}
	}
	// What follows the end of the archive belongs to the stream, too.
	if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{u.rec}, u.buf); err != nil {
		return nil, fmt.Errorf("cannot read the layer's tar stream: %w", err)
	}
	if err := u.rec.finish(); err != nil {
		return nil, err
	}
	return &Unpacked{dir: dir, o: o, tree: t, pending: u.pending, report: u.report, exact: u.exact && o.Recipe != nil}, nil
}

// entry unpacks one entry.
func (u *unpacker) entry(ctx context.Context, hdr *tar.Header, content io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if hdr.Size < 0 {
		return fmt.Errorf("its size is %d", hdr.Size)
	}
	dir, base, err := splitName(hdr.Name)
	if err != nil {
		return err
	}
	if base == "" { // the root
		if hdr.Typeflag != tar.TypeDir {
			return errors.New("the image's root must be a directory")
		}
		attr, err := u.attributes(hdr)
		u.t.dirs[""] = &directory{attributes: attr}
		return err
	}
	if rest, ok := strings.CutPrefix(base, whiteoutPrefix); ok {
		return u.whiteout(dir, base, rest)
	}
	attr, err := u.attributes(hdr)
	if err != nil {
		return err
	}
	p, err := u.t.parent(dir, true)
	if err != nil {
		return err
	}
	full := path.Join(p.path, base)
	if len(full) > maxPath {
		return errors.New("its name is too long")
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.directory(p, base, full, attr)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont, '\x00':
		return u.file(ctx, p, base, full, hdr, attr, content)
	case tar.TypeLink:
		return u.link(dir, p, base, full, hdr.Linkname)
	case tar.TypeSymlink:
		if hdr.Linkname == "" || len(hdr.Linkname) > maxPath {
			return errors.New("its target is empty or too long")
		}
		return u.node(p, base, full, attr, func() error { return unix.Symlinkat(hdr.Linkname, p.fd, base) })
	case tar.TypeFifo:
		return u.node(p, base, full, attr, func() error { return unix.Mkfifoat(p.fd, base, 0o600) })
	case tar.TypeChar, tar.TypeBlock:
		kind := uint32(unix.S_IFCHR)
		if hdr.Typeflag == tar.TypeBlock {
			kind = unix.S_IFBLK
		}
		if hdr.Devmajor < 0 || hdr.Devminor < 0 || hdr.Devmajor > math.MaxUint32 || hdr.Devminor > math.MaxUint32 {
			return errors.New("its device number is out of range")
		}
		dev := unix.Mkdev(uint32(hdr.Devmajor), uint32(hdr.Devminor))
		if !u.o.Devices || dev == 0 {
			u.report.skip(full)
			return nil
		}
		return u.node(p, base, full, attr, func() error { return unix.Mknodat(p.fd, base, kind|0o600, int(dev)) })
	default:
		u.report.skip(full)
		return nil
	}
}

// attributes takes a header's attributes.
func (u *unpacker) attributes(hdr *tar.Header) (attributes, error) {
	const maxID = math.MaxUint32 - 1 // the last one means "unchanged" to chown
	if hdr.Uid < 0 || hdr.Gid < 0 || hdr.Uid > maxID || hdr.Gid > maxID {
		return attributes{}, fmt.Errorf("its owner %d:%d is out of range", hdr.Uid, hdr.Gid)
	}
	a := attributes{mode: uint32(hdr.Mode) & 0o7777, uid: hdr.Uid, gid: hdr.Gid, mtime: hdr.ModTime}
	for key, value := range hdr.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrPrefix)
		if !ok || !keepXattr(name) {
			continue
		}
		if a.xattrs == nil {
			a.xattrs = make(map[string]string)
		}
		a.xattrs[name] = value
	}
	return a, nil
}

// keepXattr says which attributes an image may set: not those that steer overlayfs or a security
// module, and not those that only a system's administrator reads.
func keepXattr(name string) bool {
	switch {
	case name == "security.capability":
		return true
	case strings.HasPrefix(name, "security."), strings.HasPrefix(name, "trusted."), union.IsOverlayXattr(name):
		return false
	default:
		return true
	}
}

// whiteout removes what lower layers have at rest in dir, or everything that they have in dir.
func (u *unpacker) whiteout(dir, base, rest string) error {
	if base != opaqueMarker && strings.HasPrefix(base, auxPrefix) {
		return nil
	}
	if rest == "" || rest == "." || rest == ".." {
		return errors.New("its name is not a whiteout's")
	}
	p, err := u.t.parent(dir, true)
	if err != nil {
		return err
	}
	if base == opaqueMarker {
		return u.t.setOpaque(p.fd, ".", p.path)
	}
	full := path.Join(p.path, rest)
	err = unix.Mknodat(p.fd, rest, unix.S_IFCHR, 0)
	if err == nil {
		u.t.whiteouts = append(u.t.whiteouts, full)
	}
	if !errors.Is(err, unix.EEXIST) {
		return wrap("make the whiteout", full, err)
	}
	// The layer has something at that name itself, which stays. Only a directory could show what is below.
	var st unix.Stat_t
	if err := unix.Fstatat(p.fd, rest, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wrap("stat", full, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if d := u.t.dirs[full]; d != nil {
			d.fresh = true
		}
		return u.t.setOpaque(p.fd, rest, full)
	}
	return nil
}

// directory makes a directory, or describes one that exists.
func (u *unpacker) directory(p parent, base, full string, attr attributes) error {
	err := u.t.mkdir(p.fd, base, full)
	if errors.Is(err, unix.EEXIST) {
		var st unix.Stat_t
		if err := unix.Fstatat(p.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return wrap("stat", full, err)
		}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			err = nil
		case union.IsWhiteout(&st):
			err = u.t.replaceWhiteout(p.fd, base, full)
		default:
			// What was replaced has hidden all that is below.
			err = errors.Join(u.remove(p.fd, base), u.t.mkdir(p.fd, base, full))
			if err == nil {
				err = u.t.setOpaque(p.fd, base, full)
			}
		}
	}
	if err != nil {
		return err
	}
	if strings.Count(full, "/") >= maxDepth {
		return fmt.Errorf("its directories are nested more than %d deep", maxDepth)
	}
	if !u.o.KeepOwners && attr.mode&0o500 != 0o500 {
		u.exact = false // what it contains cannot be read again
	}
	u.t.dirs[full] = &directory{attributes: attr}
	return nil
}

// remove removes what an earlier entry of the layer made.
func (u *unpacker) remove(dir int, base string) error {
	u.t.stale = true
	u.exact = false
	return removeAt(dir, base)
}

// create runs make, which makes base in p, in place of what is there.
func (u *unpacker) create(p parent, base, full string, make func() error) error {
	err := make()
	if !errors.Is(err, unix.EEXIST) {
		return wrap("make", full, err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(p.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wrap("stat", full, err)
	}
	if union.IsWhiteout(&st) {
		err = unix.Unlinkat(p.fd, base, 0)
	} else {
		err = u.remove(p.fd, base)
	}
	if err != nil {
		return wrap("replace", full, err)
	}
	return wrap("make", full, make())
}

// node makes a file without content.
func (u *unpacker) node(p parent, base, full string, attr attributes, make func() error) error {
	if err := u.create(p, base, full, make); err != nil {
		return err
	}
	return u.o.describe(p.fd, base, full, attr)
}

// file makes a regular file.
func (u *unpacker) file(ctx context.Context, p parent, base, full string, hdr *tar.Header, attr attributes, content io.Reader) error {
	if err := u.o.Budget.takeBytes(hdr.Size); err != nil {
		return err
	}
	var f *os.File
	err := u.create(p, base, full, func() error {
		fd, err := unix.Openat(p.fd, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			f = os.NewFile(uintptr(fd), full)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	// The content of sparse files is not in the stream as it is in the file, and one that its owner
	// may not read cannot be read again.
	recorded := hdr.Size > 0 && !isSparse(hdr) && (u.o.KeepOwners || attr.mode&0o400 != 0)
	if recorded {
		u.rec.begin(full, hdr.Size)
	}
	err = u.copy(ctx, f, content)
	u.rec.end()
	if err != nil {
		return err
	}
	u.report.Bytes += hdr.Size
	return u.o.finish(f, attr)
}

// isSparse reports whether a header describes a file with holes.
func isSparse(hdr *tar.Header) bool {
	if hdr.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

var zeros [128 << 10]byte

// copy writes content to the empty file f, with holes where a whole buffer is zero.
func (u *unpacker) copy(ctx context.Context, f *os.File, content io.Reader) error {
	var size int64
	hole := false
	for {
		n, err := io.ReadFull(content, u.buf)
		if n > 0 {
			hole = n == len(u.buf) && bytes.Equal(u.buf, zeros[:])
			if !hole {
				if _, err := f.WriteAt(u.buf[:n], size); err != nil {
					return err
				}
			}
			size += int64(n)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			if hole {
				return f.Truncate(size)
			}
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// link makes a hard link to a file of the layer, or notes one to a file below.
func (u *unpacker) link(dir string, p parent, base, full, target string) error {
	tdir, tbase, err := splitName(target)
	if err != nil {
		return fmt.Errorf("its target %.200q cannot be linked to: %w", target, err)
	}
	if tbase == "" || strings.HasPrefix(tbase, whiteoutPrefix) {
		return fmt.Errorf("its target %.200q cannot be linked to", target)
	}
	// The target's directory may be the one used last, which stays open: keep the link's own.
	pfd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pfd)
	p.fd = pfd
	t, err := u.t.parent(tdir, false)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstatat(t.fd, tbase, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		// A file of a lower layer. A whiteout keeps the link's place until then.
		if err := unix.Fstatat(p.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && !union.IsWhiteout(&st) {
			if err := u.remove(p.fd, base); err != nil {
				return wrap("replace", full, err)
			}
		}
		u.pending = append(u.pending, link{path: full, target: path.Join(tdir, tbase)})
		return nil
	case err != nil:
		return wrap("stat", target, err)
	case union.IsWhiteout(&st):
		return fmt.Errorf("its target %.200q was removed by the layer", target)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return fmt.Errorf("its target %.200q is a directory", target)
	case path.Join(t.path, tbase) == full:
		return nil
	}
	return u.create(p, base, full, func() error { return unix.Linkat(t.fd, tbase, p.fd, base, 0) })
}

// finish gives an open regular file its attributes.
func (o *Options) finish(f *os.File, a attributes) error {
	fd := int(f.Fd())
	if o.KeepOwners {
		if err := unix.Fchown(fd, a.uid, a.gid); err != nil {
			return wrap("chown", f.Name(), err)
		}
	}
	if err := o.setXattrs(fd, f.Name(), a.xattrs); err != nil {
		return err
	}
	// After chown, which takes setuid away, and after attributes, which need write permission.
	if err := unix.Fchmod(fd, a.mode); err != nil {
		return wrap("chmod", f.Name(), err)
	}
	ts := []unix.Timespec{timespec(a.mtime), timespec(a.mtime)}
	return wrap("set times of", f.Name(), futimens(fd, ts))
}

// describe gives a file that is not opened its attributes.
func (o *Options) describe(dir int, base, full string, a attributes) error {
	if o.KeepOwners {
		if err := unix.Fchownat(dir, base, a.uid, a.gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return wrap("chown", full, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wrap("stat", full, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := unix.Fchmodat(dir, base, a.mode, 0); err != nil {
			return wrap("chmod", full, err)
		}
	}
	ts := []unix.Timespec{timespec(a.mtime), timespec(a.mtime)}
	return wrap("set times of", full, unix.UtimesNanoAt(dir, base, ts, unix.AT_SYMLINK_NOFOLLOW))
}

// setXattrs sets extended attributes, as far as the file system has them and the process may.
func (o *Options) setXattrs(fd int, full string, xattrs map[string]string) error {
	for name, value := range xattrs {
		err := unix.Fsetxattr(fd, name, []byte(value), 0)
		switch {
		case err == nil, errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL):
		case errors.Is(err, unix.ERANGE), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ENOSPC):
			return fmt.Errorf("cannot set its attribute %.100q of %d bytes: %w", name, len(value), err)
		default:
			return wrap("set an attribute of", full, err)
		}
	}
	return nil
}

// Settle adds what depends on lower layers, of which below is the merge (nil if there are none), and
// then gives directories their attributes.
func (u *Unpacked) Settle(below *union.View) (Report, error) {
	t, err := newTree(u.dir, u.o.UserXattr)
	if err != nil {
		return Report{}, err
	}
	defer t.close()
	t.dirs, t.opaque = u.tree.dirs, u.tree.opaque
	if err := u.settleLinks(t, below); err != nil {
		return Report{}, err
	}
	if err := u.settleWhiteouts(t, below); err != nil {
		return Report{}, err
	}
	names := make([]string, 0, len(t.dirs))
	for name, d := range t.dirs {
		names = append(names, name)
		if d.implied {
			d.attributes = attributes{mode: 0o755, mtime: time.Unix(0, 0)}
			if below != nil && !d.fresh && !t.isHidden(name) {
				inherit(&d.attributes, below, name)
			}
		}
	}
	// Deepest first: a mode may close a directory, and what is made inside changes its time.
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	for _, name := range names {
		if err := u.settleDir(t, name); err != nil {
			return Report{}, fmt.Errorf("cannot unpack %.200q: %w", name, err)
		}
	}
	u.report.Exact = u.exact
	return u.report, nil
}

// inherit takes the attributes of the directory below, with which overlayfs merges this one.
func inherit(a *attributes, below *union.View, name string) {
	st, err := below.LstatExact(name)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	*a = attributesOf(&st)
	if xattrs, err := below.Xattrs(name); err == nil {
		a.xattrs = xattrs
	}
}

func attributesOf(st *unix.Stat_t) attributes {
	return attributes{mode: st.Mode & 0o7777, uid: int(st.Uid), gid: int(st.Gid), mtime: time.Unix(st.Mtim.Unix())}
}

// settleWhiteouts removes whiteouts that hide nothing. In a directory that overlayfs does not merge
// with one below, it would list them.
func (u *Unpacked) settleWhiteouts(t *tree, below *union.View) error {
	for _, name := range u.tree.whiteouts {
		if below != nil && !t.isHidden(name) {
			if _, err := below.LstatExact(name); err == nil {
				continue
			}
		}
		dir, base := path.Split(name)
		fd, err := t.exact(strings.TrimSuffix(dir, "/"))
		if err != nil {
			continue // replaced
		}
		var st unix.Stat_t
		err = unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && union.IsWhiteout(&st) {
			err = wrap("unlink", name, unix.Unlinkat(fd, base, 0))
		} else {
			err = nil
		}
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// settleDir gives a directory its attributes.
func (u *Unpacked) settleDir(t *tree, name string) error {
	d := t.dirs[name]
	fd, err := t.exact(name)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) {
		return nil // a later entry replaced it
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	open, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", name, err)
	}
	f := os.NewFile(uintptr(open), name)
	defer f.Close()
	return u.o.finish(f, d.attributes)
}

// settleLinks makes the hard links to files of lower layers: a copy, and links to the copy.
func (u *Unpacked) settleLinks(t *tree, below *union.View) error {
	copies := make(map[string]string) // by target
	for _, l := range u.pending {
		if err := u.settleLink(t, below, l, copies); err != nil {
			return fmt.Errorf("cannot unpack %.200q: cannot link to %.200q of a lower layer: %w", l.path, l.target, err)
		}
	}
	return nil
}

func (u *Unpacked) settleLink(t *tree, below *union.View, l link, copies map[string]string) error {
	if below == nil {
		return unix.ENOENT
	}
	dir, base, err := splitName(l.path)
	if err != nil {
		return err
	}
	p, err := t.parent(dir, true)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(p.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil && !union.IsWhiteout(&st):
		return nil // a later entry
	case err == nil:
		if err := unix.Unlinkat(p.fd, base, 0); err != nil {
			return err
		}
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	if first, ok := copies[l.target]; ok {
		return unix.Linkat(t.root, first, p.fd, base, 0)
	}
	if st, err = below.Lstat(l.target); err != nil {
		return err
	}
	a := attributesOf(&st)
	if !u.o.KeepOwners && st.Mode&0o400 == 0 {
		u.exact = false
	}
	if a.xattrs, err = below.Xattrs(l.target); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if err := u.o.Budget.takeBytes(st.Size); err != nil {
			return err
		}
		src, err := below.OpenLink(l.target)
		if err != nil {
			return err
		}
		defer src.Close()
		fd, err := unix.Openat(p.fd, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		dst := os.NewFile(uintptr(fd), l.path)
		defer dst.Close()
		if _, err := io.Copy(dst, src); err != nil {
			return err
		}
		u.report.Bytes += st.Size
		if err := u.o.finish(dst, a); err != nil {
			return err
		}
	case unix.S_IFLNK:
		target, err := below.Readlink(l.target)
		if err != nil {
			return err
		}
		if err := unix.Symlinkat(target, p.fd, base); err != nil {
			return err
		}
		if err := u.o.describe(p.fd, base, l.path, a); err != nil {
			return err
		}
	case unix.S_IFIFO:
		if err := unix.Mkfifoat(p.fd, base, 0o600); err != nil {
			return err
		}
		if err := u.o.describe(p.fd, base, l.path, a); err != nil {
			return err
		}
	default:
		return errors.New("it is neither a file nor a symbolic link")
	}
	copies[l.target] = l.path
	return nil
}

func timespec(t time.Time) unix.Timespec {
	// Times that the system cannot represent are the epoch.
	ts, err := unix.TimeToTimespec(t)
	if err != nil || t.IsZero() {
		return unix.Timespec{}
	}
	return ts
}

// futimens is utimensat without a path, which every kernel knows.
func futimens(fd int, ts []unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts[0])), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
