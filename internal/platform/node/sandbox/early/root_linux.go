// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// refusal is an error that lies in the container's description.
type refusal struct {
	code int32
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// tree is the root directory of a container while it is made. The thread that makes it is
// in the container's mount namespace, with the machine's root directory.
type tree struct {
	job     *Job
	root    int
	scratch int // the scratch, over which the root file system may be mounted
}

// make mounts the root file system and all that needs no process in the container.
func (t *tree) make() (err error) {
	if t.scratch, err = syscall.Open(t.job.Scratch, oPath|oDirectory|oCloexec, 0); err != nil {
		return err
	}
	defer syscall.Close(t.scratch)
	if err := t.mountRoot(); err != nil {
		return err
	}
	if err := t.mountDev(); err != nil {
		return fmt.Errorf("cannot make /dev: %w", err)
	}
	if err := t.mountSys(); err != nil {
		return fmt.Errorf("cannot make /sys: %w", err)
	}
	for _, m := range t.job.Mounts {
		if err := t.mount(m); err != nil && !m.Optional {
			return &refusal{128, fmt.Errorf("cannot mount a volume at %s: %w", m.Target, err)}
		}
	}
	dir, err := walk(t.root, t.job.Dir, directory)
	if err == nil {
		var is bool
		if is, err = isDir(dir); err == nil && !is {
			err = syscall.ENOTDIR
		}
		syscall.Close(dir)
	}
	if err != nil {
		return &refusal{128, fmt.Errorf("cannot make the working directory %s: %w", t.job.Dir, err)}
	}
	return nil
}

// mountRoot mounts the layers with a new directory for what is written. Nothing in them is
// a device, whatever an image says or a program makes: see mountDev.
func (t *tree) mountRoot() error {
	at := rootAt(t.job)
	if len(t.job.Layers) > 0 {
		if err := Overlay(at, t.job.Scratch, t.job.Layers, t.job.Userns); err != nil {
			return err
		}
	} else if err := syscall.Mount(at, at, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount the root directory: %w", err)
	}
	fd, err := syscall.Open(at, oPath|oDirectory|oCloexec, 0)
	if err != nil {
		return err
	}
	t.root = fd
	if err := setMount(fd, mountAttrNodev, false); err != nil {
		return fmt.Errorf("cannot keep devices out of the root directory: %w", err)
	}
	return nil
}

// rootAt is where the root file system is mounted: over the scratch, whose directories the
// overlay holds.
func rootAt(job *Job) string {
	if len(job.Layers) > 0 {
		return job.Scratch
	}
	return path.Join(job.Scratch, "root")
}

// Overlay mounts layers, the lowest first, at a directory. What is written goes to
// scratch. With userxattr the layers are those of an ordinary user.
func Overlay(at, scratch string, layers []string, userxattr bool) error {
	d := &numbered{}
	defer d.close()
	lower, err := d.lower(layers)
	if err != nil {
		return err
	}
	options := "volatile," + lower
	for _, dir := range []string{"upper", "work"} {
		name, err := d.make(path.Join(scratch, dir))
		if err != nil {
			return err
		}
		options += "," + dir + "dir=" + name
	}
	return mountOverlay(at, options, len(layers), userxattr)
}

// Union mounts layers, the lowest first, read-only at a directory. empty is a directory that it
// makes for a single layer: the kernel takes no fewer than two.
func Union(at, empty string, layers []string, userxattr bool) error {
	d := &numbered{}
	defer d.close()
	lower, err := d.lower(layers)
	if err != nil {
		return err
	}
	if len(layers) == 1 {
		name, err := d.make(empty)
		if err != nil {
			return err
		}
		lower += ":" + name
	}
	return mountOverlay(at, lower, len(layers), userxattr)
}

// numbered are directories that are named by their number: the kernel takes a page of options,
// in which such names are short, and need no escapes.
type numbered struct{ fds []int }

func (n *numbered) close() {
	for _, fd := range n.fds {
		syscall.Close(fd)
	}
}

func (n *numbered) open(dir string) (string, error) {
	fd, err := syscall.Open(dir, oPath|oDirectory|oCloexec, 0)
	if err != nil {
		return "", fmt.Errorf("cannot open the layer %s: %w", dir, err)
	}
	n.fds = append(n.fds, fd)
	return "/proc/self/fd/" + strconv.Itoa(fd), nil
}

// make is open for a directory that may be missing.
func (n *numbered) make(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return "", err
	}
	return n.open(dir)
}

// lower is the option for the layers.
func (n *numbered) lower(layers []string) (string, error) {
	names := make([]string, len(layers))
	for i, layer := range layers {
		name, err := n.open(layer)
		if err != nil {
			return "", err
		}
		names[len(layers)-1-i] = name
	}
	return "lowerdir=" + strings.Join(names, ":"), nil
}

func mountOverlay(at, options string, layers int, userxattr bool) error {
	if userxattr {
		options += ",userxattr"
	}
	if len(options) >= os.Getpagesize() {
		return fmt.Errorf("the image has %d layers, more than this system mounts", layers)
	}
	if err := syscall.Mount("overlay", at, "overlay", 0, options); err != nil {
		return fmt.Errorf("cannot mount %d layers as an overlay: %w", layers, err)
	}
	return nil
}

// devices are in every container.
var devices = [...]struct {
	name  string
	minor uint64
	major uint64
}{
	{"null", 3, 1}, {"zero", 5, 1}, {"full", 7, 1}, {"random", 8, 1}, {"urandom", 9, 1}, {"tty", 0, 5},
}

// mountDev makes /dev. It and the root file system have no devices of their own (nodev):
// each device is a mount of the machine's, so that a container that may make device files
// cannot open them. This needs no device cgroup.
func (t *tree) mountDev() error {
	dev, err := own(t.root, "dev")
	if err != nil {
		return err
	}
	defer syscall.Close(dev)
	if t.job.Privileged && !t.job.Userns {
		all, err := openTree(-100, "/dev", openTreeClone|atRecursive)
		if err != nil {
			return err
		}
		defer syscall.Close(all)
		return moveMount(all, dev)
	}
	if dev, err = t.fresh(dev, "tmpfs", mountAttrNosuid|mountAttrNodev|mountAttrNoexec, "mode=755", "size=65536k"); err != nil {
		return err
	}
	defer syscall.Close(dev)
	for _, d := range devices {
		if err := t.device(dev, d.name, "/dev/"+d.name, d.major<<8|d.minor); err != nil {
			return fmt.Errorf("cannot make the device %s: %w", d.name, err)
		}
	}
	if t.job.TTY {
		t.console(dev)
	}
	for _, link := range [...][2]string{
		{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
	} {
		if err := symlinkat(link[0], dev, link[1]); err != nil {
			return err
		}
	}
	terminals := []string{"newinstance", "ptmxmode=0666", "mode=0620"}
	if !t.job.Userns {
		terminals = append(terminals, "gid=5")
	}
	for _, fs := range []struct {
		name, kind string
		attr       uintptr
		options    []string
	}{
		{"pts", "devpts", mountAttrNosuid | mountAttrNoexec, terminals},
		{"shm", "tmpfs", mountAttrNosuid | mountAttrNodev | mountAttrNoexec, []string{"mode=1777", "size=65536k"}},
		{"mqueue", "mqueue", mountAttrNosuid | mountAttrNodev | mountAttrNoexec, nil},
	} {
		if err := syscall.Mkdirat(dev, fs.name, 0o755); err != nil {
			return err
		}
		at, err := openat(dev, fs.name, oPath|oNofollow)
		if err != nil {
			return err
		}
		made, err := t.fresh(at, fs.kind, fs.attr, fs.options...)
		syscall.Close(at)
		if err != nil && fs.name != "mqueue" {
			return fmt.Errorf("cannot mount %s: %w", fs.kind, err)
		}
		if err == nil {
			syscall.Close(made)
		}
	}
	return nil
}

// fresh mounts a new file system at a directory, and returns its own.
func (t *tree) fresh(at int, kind string, attr uintptr, options ...string) (int, error) {
	fd, err := newMount(kind, attr, options...)
	if err != nil {
		return -1, err
	}
	if err := moveMount(fd, at); err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// device puts a device of the machine into /dev. number is what it must be, or 0.
func (t *tree) device(dev int, name, source string, number uint64) error {
	if err := create(dev, name, true); err != nil {
		return err
	}
	at, err := openat(dev, name, oPath|oNofollow)
	if err != nil {
		return err
	}
	defer syscall.Close(at)
	from, err := takeDevice(source, number)
	if err != nil {
		return err
	}
	defer syscall.Close(from)
	return moveMount(from, at)
}

// console gives the program's terminal, which is one of the machine's, a name in /dev. It is
// left out where the machine itself has none for it.
func (t *tree) console(dev int) {
	var stat syscall.Stat_t
	name, err := os.Readlink("/proc/self/fd/0")
	if err == nil {
		err = syscall.Fstat(0, &stat)
	}
	if err == nil {
		err = t.device(dev, "console", name, uint64(stat.Rdev))
	}
	if err != nil {
		syscall.Unlinkat(dev, "console")
	}
}

// mountSys mounts the system's files, read-only.
func (t *tree) mountSys() error {
	sys, err := own(t.root, "sys")
	if err != nil {
		return err
	}
	defer syscall.Close(sys)
	const attr = mountAttrNosuid | mountAttrNodev | mountAttrNoexec
	ro := uint64(mountAttrRdonly)
	if t.job.Privileged {
		ro = 0
	}
	fd, err := newMount("sysfs", uintptr(attr|ro))
	if err != nil { // the network namespace is another's
		if fd, err = openTree(-100, "/sys", openTreeClone|atRecursive); err != nil {
			return err
		}
		if err := setMount(fd, attr|ro, true); err != nil {
			syscall.Close(fd)
			return err
		}
	}
	defer syscall.Close(fd)
	return moveMount(fd, sys)
}

// mount mounts a volume. Its devices count only if it is one.
func (t *tree) mount(m Mount) error {
	if target := path.Clean("/" + m.Target); target == "/" || target == "/proc" || strings.HasPrefix(target, "/proc/") {
		return errors.New("no volume may be there")
	}
	from, err := t.take(m)
	if err != nil {
		return fmt.Errorf("cannot take %s: %w", m.Source, err)
	}
	defer syscall.Close(from)
	var stat syscall.Stat_t
	if err := syscall.Fstat(from, &stat); err != nil {
		return err
	}
	var attr uint64
	end := file
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		end = directory
		fallthrough
	case syscall.S_IFREG:
		attr = mountAttrNodev
	}
	if t.job.Privileged {
		attr = 0
	}
	if m.ReadOnly {
		attr |= mountAttrRdonly
	}
	if len(m.Layers) > 0 {
		attr |= mountAttrRdonly | mountAttrNosuid | mountAttrNodev | mountAttrNoexec
	}
	if attr != 0 {
		if err := setMount(from, attr, true); err != nil {
			return fmt.Errorf("cannot protect %s: %w", m.Source, err)
		}
	}
	at, err := walk(t.root, m.Target, end)
	if err != nil {
		return fmt.Errorf("cannot make the mount point: %w", err)
	}
	defer syscall.Close(at)
	return moveMount(from, at)
}

// take copies the mount of a volume.
func (t *tree) take(m Mount) (int, error) {
	switch {
	case len(m.Layers) > 0:
		return t.takeUnion(m)
	case m.Base != "":
		return takeBelow(m)
	}
	return openTree(-100, m.Source, openTreeClone|atRecursive)
}

// takeBelow looks a path up that programs may change meanwhile.
func takeBelow(m Mount) (int, error) {
	base, err := syscall.Open(m.Base, oPath|oDirectory|oCloexec, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(base)
	rel, ok := strings.CutPrefix(m.Source, strings.TrimSuffix(m.Base, "/")+"/")
	if !ok {
		return -1, errors.New("it is not in its volume")
	}
	fd, err := openat2(base, rel, oPath, resolveBeneath|resolveNoMagiclinks)
	if err == syscall.EXDEV {
		return -1, errors.New("a link leads out of the volume")
	}
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fd)
	return openTree(fd, "", openTreeClone|atRecursive|atEmptyPath)
}

// takeUnion mounts layers, and copies that mount, or a part of it.
func (t *tree) takeUnion(m Mount) (int, error) {
	scratch := "/proc/self/fd/" + strconv.Itoa(t.scratch)
	at := scratch + "/union"
	if err := os.Mkdir(at, 0o700); err != nil && !os.IsExist(err) {
		return -1, err
	}
	if len(t.job.Layers) > 0 {
		if err := Union(at, scratch+"/nothing", m.Layers, t.job.Userns); err != nil {
			return -1, err
		}
	} else if err := syscall.Mount(m.Layers[0], at, "", syscall.MS_BIND, ""); err != nil { // its copy
		return -1, err
	}
	const detach = syscall.MNT_DETACH
	defer syscall.Unmount(at, detach)
	union, err := syscall.Open(at, oPath|oDirectory|oCloexec, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(union)
	fd, err := walk(union, m.Source, nothing)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fd)
	return openTree(fd, "", openTreeClone|atEmptyPath)
}

// finish mounts what the child has made, and hides what is not for the container.
func (t *tree) finish(proc, group int) error {
	if proc < 0 {
		return errors.New("cannot mount /proc: this system does not allow it, perhaps because Diwan itself is in a container, whose /proc has masks")
	}
	at, err := own(t.root, "proc")
	if err != nil {
		return fmt.Errorf("cannot make /proc: %w", err)
	}
	defer syscall.Close(at)
	if err := moveMount(proc, at); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	if group >= 0 {
		if at, err := openat2(t.root, "sys/fs/cgroup", oPath|oNofollow|oDirectory, resolveNoSymlinks|resolveBeneath); err == nil {
			err = moveMount(group, at)
			syscall.Close(at)
			if err != nil {
				return fmt.Errorf("cannot mount the cgroup: %w", err)
			}
		}
	}
	if err := t.mask(); err != nil {
		return err
	}
	if t.job.ReadOnly {
		if err := setMount(t.root, mountAttrRdonly, false); err != nil {
			return fmt.Errorf("cannot make the root directory read-only: %w", err)
		}
	}
	return nil
}

// mask hides and protects files of the kernel. All that exist are in file systems that the
// kernel made, and no part of a path is a link.
func (t *tree) mask() error {
	for _, name := range t.job.Masked {
		if err := t.below(name, t.hide); err != nil {
			return fmt.Errorf("cannot hide %s: %w", name, err)
		}
	}
	for _, name := range t.job.Fixed {
		if err := t.below(name, fix); err != nil {
			return fmt.Errorf("cannot protect %s: %w", name, err)
		}
	}
	return nil
}

// below calls f with what a path without links names in the root directory, if that exists.
func (t *tree) below(name string, f func(at int) error) error {
	at, err := openat2(t.root, strings.TrimPrefix(name, "/"), oPath|oNofollow, resolveNoSymlinks|resolveBeneath)
	if err == syscall.ENOENT || err == syscall.ENOTDIR || err == syscall.EACCES {
		return nil
	}
	if err != nil {
		return err
	}
	defer syscall.Close(at)
	return f(at)
}

// hide mounts nothing over a file, or directory.
func (t *tree) hide(at int) error {
	is, err := isDir(at)
	if err != nil {
		return err
	}
	var from int
	if is {
		from, err = newMount("tmpfs", mountAttrRdonly|mountAttrNosuid|mountAttrNodev|mountAttrNoexec, "size=4k", "mode=755")
	} else {
		from, err = takeDevice("/dev/null", 1<<8|3)
	}
	if err != nil {
		return err
	}
	defer syscall.Close(from)
	return moveMount(from, at)
}

// fix makes a file or directory read-only.
func fix(at int) error {
	from, err := openTree(at, "", openTreeClone|atRecursive|atEmptyPath)
	if err != nil {
		return err
	}
	defer syscall.Close(from)
	if err := setMount(from, mountAttrRdonly|mountAttrNosuid|mountAttrNodev|mountAttrNoexec, true); err != nil {
		return err
	}
	return moveMount(from, at)
}

// takeDevice copies the mount of a device of the machine. number is what it must be, or 0.
func takeDevice(source string, number uint64) (int, error) {
	fd, err := openTree(-100, source, openTreeClone)
	if err != nil {
		return -1, err
	}
	var stat syscall.Stat_t
	if err = syscall.Fstat(fd, &stat); err == nil && (stat.Mode&syscall.S_IFMT != syscall.S_IFCHR || number != 0 && uint64(stat.Rdev) != number) {
		err = fmt.Errorf("%s of this machine is another file", source)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}
