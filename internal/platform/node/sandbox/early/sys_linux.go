// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// System calls that package syscall does not know. Their numbers are the same on all
// architectures.
const (
	sysPidfdOpen    = 434
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysFsopen       = 430
	sysFsconfig     = 431
	sysFsmount      = 432
	sysClone3       = 435
	sysCloseRange   = 436
	sysOpenat2      = 437
	sysPidfdGetfd   = 438
	sysMountSetattr = 442
)

// Constants of linux/*.h.
const (
	atEmptyPath = 0x1000
	atRecursive = 0x8000
	oPath       = 0x200000
	oNofollow   = syscall.O_NOFOLLOW
	oDirectory  = syscall.O_DIRECTORY
	oCloexec    = syscall.O_CLOEXEC

	openTreeClone   = 1
	openTreeCloexec = oCloexec

	moveMountFEmptyPath = 0x4
	moveMountTEmptyPath = 0x40

	fsopenCloexec   = 1
	fsconfigString  = 1
	fsconfigFlag    = 0
	fsconfigCreate  = 6
	fsmountCloexec  = 1
	mountAttrRdonly = 0x1
	mountAttrNosuid = 0x2
	mountAttrNodev  = 0x4
	mountAttrNoexec = 0x8

	cloneNewns     = 0x00020000
	cloneNewcgroup = 0x02000000
	cloneNewuts    = 0x04000000
	cloneNewipc    = 0x08000000
	cloneNewuser   = 0x10000000
	cloneNewpid    = 0x20000000
	cloneNewnet    = 0x40000000
	clonePidfd     = 0x00001000
	cloneClearSig  = 0x100000000
	cloneIntoGroup = 0x200000000

	resolveNoMagiclinks = 0x02
	resolveNoSymlinks   = 0x04
	resolveBeneath      = 0x08
	resolveInRoot       = 0x10

	devptsMagic = 0x1cd1
	procMagic   = 0x9fa0
)

// fail is the error of a step: what was being done, and why it did not work.
func fail(errno syscall.Errno, format string, args ...any) error {
	return fmt.Errorf("cannot %s: %w", fmt.Sprintf(format, args...), errno)
}

func cstring(s string) *byte {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		p = new(byte) // a name with a zero byte names nothing
	}
	return p
}

// result turns the error number of a system call into an error.
func result(fd uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func openTree(dir int, path string, flags uintptr) (int, error) {
	fd, _, errno := syscall.Syscall(sysOpenTree, uintptr(dir), uintptr(unsafe.Pointer(cstring(path))), flags|openTreeCloexec)
	return result(fd, errno)
}

// moveMount puts the mount fd onto the directory or file target.
func moveMount(fd, target int) error {
	empty := cstring("")
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(target), uintptr(unsafe.Pointer(empty)),
		moveMountFEmptyPath|moveMountTEmptyPath, 0)
	runtime.KeepAlive(empty)
	_, err := result(0, errno)
	return err
}

// mountAttr is struct mount_attr.
type mountAttr struct{ set, clear, propagation, userns uint64 }

// setMount sets attributes of the mount fd.
func setMount(fd int, set uint64, recursive bool) error {
	attr := mountAttr{set: set}
	flags := uintptr(atEmptyPath)
	if recursive {
		flags |= atRecursive
	}
	empty := cstring("")
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(fd), uintptr(unsafe.Pointer(empty)), flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	_, err := result(0, errno)
	return err
}

// newMount makes a file system that is mounted nowhere. Options are NAME=VALUE, or NAME.
func newMount(kind string, attr uintptr, options ...string) (int, error) {
	fs, _, errno := syscall.Syscall(sysFsopen, uintptr(unsafe.Pointer(cstring(kind))), fsopenCloexec, 0)
	if errno != 0 {
		return -1, errno
	}
	defer syscall.Close(int(fs))
	for _, option := range options {
		name, value, command := option, "", uintptr(fsconfigFlag)
		for i := range option {
			if option[i] == '=' {
				name, value, command = option[:i], option[i+1:], fsconfigString
				break
			}
		}
		var text *byte
		if command == fsconfigString {
			text = cstring(value)
		}
		if _, _, errno := syscall.Syscall6(sysFsconfig, fs, command, uintptr(unsafe.Pointer(cstring(name))), uintptr(unsafe.Pointer(text)), 0, 0); errno != 0 {
			return -1, errno
		}
	}
	if _, _, errno := syscall.Syscall6(sysFsconfig, fs, fsconfigCreate, 0, 0, 0, 0); errno != 0 {
		return -1, errno
	}
	fd, _, errno := syscall.Syscall(sysFsmount, fs, fsmountCloexec, attr)
	return result(fd, errno)
}

// openHow is struct open_how.
type openHow struct{ flags, mode, resolve uint64 }

func openat2(dir int, path string, flags, resolve uint64) (int, error) {
	how := openHow{flags: flags | oCloexec, resolve: resolve}
	for {
		fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(cstring(path))), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
		if errno == syscall.EINTR || errno == syscall.EAGAIN { // a rename elsewhere
			continue
		}
		return result(fd, errno)
	}
}

func readlinkat(dir int, path string) (string, error) {
	buffer := make([]byte, syscall.PathMax)
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(cstring(path))), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	return string(buffer[:n]), nil
}

func setns(fd int, kind uintptr) error {
	_, _, errno := syscall.Syscall(sysSetns, uintptr(fd), kind, 0)
	_, err := result(0, errno)
	return err
}

func pidfdOpen(pid int) (int, error) {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	return result(fd, errno)
}

func pidfdGetfd(pidfd, fd int) (int, error) {
	got, _, errno := syscall.Syscall(sysPidfdGetfd, uintptr(pidfd), uintptr(fd), 0)
	return result(got, errno)
}

func symlinkat(to string, dir int, name string) error {
	_, _, errno := syscall.Syscall(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(cstring(to))), uintptr(dir), uintptr(unsafe.Pointer(cstring(name))))
	_, err := result(0, errno)
	return err
}
