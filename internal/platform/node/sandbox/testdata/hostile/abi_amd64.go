// SPDX-License-Identifier: Apache-2.0

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 makes a system call as programs of 386 do. Pointers are below 4 GiB.
func int80(number, a, b, c uint32) int32

// low is memory whose addresses have 32 bits.
func low() []byte {
	p, err := unix.MmapPtr(-1, 0, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_32BIT)
	if err != nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), 4096)
}

// compat makes denied calls of 386: those of 64 bits are other ones.
func compat(open func(string, ...any)) {
	memory := low()
	if memory == nil {
		return
	}
	at := uint32(uintptr(unsafe.Pointer(&memory[0])))
	const socket, socketcall = 359, 102
	for name, family := range families {
		words := (*[3]uint32)(unsafe.Pointer(&memory[0]))
		*words = [3]uint32{uint32(family), unix.SOCK_SEQPACKET, 0}
		if fd := int80(socketcall, 1, at, 0); fd >= 0 {
			open("%s by socketcall", name)
			unix.Close(int(fd))
		}
		if fd := int80(socket, uint32(family), unix.SOCK_SEQPACKET, 0); fd >= 0 {
			open("%s by socket", name)
			unix.Close(int(fd))
		}
	}
	copy(memory[64:], "/tmp\x00")
	copy(memory[128:], "tmpfs\x00")
	for name, call := range map[string][4]uint32{
		"mount":     {21, at + 128, at + 64, at + 128},
		"umount2":   {52, at + 64, 2, 0},
		"unshare":   {310, unix.CLONE_NEWUSER, 0, 0},
		"keyctl":    {288, 0, 0xfffffffd, 0},
		"add_key":   {286, at + 128, at + 64, at},
		"bpf":       {357, 5, at, 64},
		"setns":     {346, 0, 0, 0},
		"kexec":     {283, 0, 0, at},
		"fsopen":    {430, at + 128, 0, 0},
		"io_uring":  {425, 1, at + 256, 0},
		"open_tree": {428, 0xffffff9c, at + 64, 1},
	} {
		clear(memory[256:])
		if n := int80(call[0], call[1], call[2], call[3]); n >= 0 {
			open("%s: %d", name, n)
		}
	}
}

// x32 makes denied calls by the numbers of the third ABI.
func x32(open func(string, ...any)) {
	const bit = 0x40000000
	for name, call := range map[string][3]uintptr{"unshare": {unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0}, "socket of AF_ALG": {unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET}} {
		if _, _, e := unix.Syscall(bit|call[0], call[1], call[2], 0); e == 0 {
			open("%s", name)
		}
	}
}
