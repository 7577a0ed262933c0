// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// identity is a user, as the system judges what they may do to files.
type identity struct {
	user, group uint32
	// unknown is the user that files of all users seem to have whom the user
	// namespace of this process does not know, root among them. 0: it knows all.
	unknown uint32
}

// self is the user who runs this process.
func self() identity {
	me := identity{user: uint32(os.Getuid()), group: uint32(os.Getgid())}
	known, _ := os.ReadFile("/proc/self/uid_map")
	if fields := strings.Fields(string(known)); len(fields) == 0 || fields[2] == "4294967295" {
		return me
	}
	overflow, _ := os.ReadFile("/proc/sys/kernel/overflowuid")
	if n, err := strconv.ParseUint(strings.TrimSpace(string(overflow)), 10, 32); err == nil {
		me.unknown = uint32(n)
	}
	return me
}

// fault says why a directory lets others replace what is in it, or "".
func (me identity) fault(mode fs.FileMode, owner, group uint32) string {
	ownGroup := group == 0 || group == me.group && group == me.user
	switch {
	case owner != me.user && owner != 0 && (me.unknown == 0 || owner != me.unknown):
		return fmt.Sprintf("belongs to user %d", owner)
	case mode&fs.ModeSticky != 0:
		return ""
	case mode&0o002 != 0:
		return "can be written to by every user"
	case mode&0o020 != 0 && !ownGroup:
		return fmt.Sprintf("can be written to by group %d", group)
	}
	return ""
}

// ErrUntrusted says that other users can change a home.
var ErrUntrusted = errors.New("other users can change it")

// trusted refuses a home that other users own or can write to, or could replace
// by another: who can change its files decides what this user runs.
func (h Home) trusted() error {
	me := self()
	dir, fault, err := untrusted(string(h), me, 40)
	switch {
	case err != nil:
		return fmt.Errorf("cannot check who can write to the home %s: %w", h, err)
	case fault == "":
		return nil
	case strings.HasPrefix(fault, "belongs"):
		return fmt.Errorf("cannot use the home %s: %w: %s %s, who could have user %d run anything; run diwan as that user, or choose another home with --home or DIWAN_HOME", h, ErrUntrusted, dir, fault, me.user)
	default:
		return fmt.Errorf("cannot use the home %s: %w: %s %s; forbid that with `chmod go-w %s`, or choose another home with --home or DIWAN_HOME", h, ErrUntrusted, dir, fault, quoted(dir))
	}
}

// untrusted finds a directory on the way to path, along symbolic links, that
// others than me can change.
func untrusted(path string, me identity, links int) (dir, fault string, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", "", err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if links == 0 {
			return "", "", errors.New("too many symbolic links")
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", "", err
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", "", err
			}
			target = filepath.Join(dir, target)
		}
		if dir, fault, err := untrusted(target, me, links-1); err != nil || fault != "" {
			return dir, fault, err
		}
	case info.IsDir():
		owner := info.Sys().(*syscall.Stat_t)
		if fault := me.fault(info.Mode(), owner.Uid, owner.Gid); fault != "" {
			return path, fault, nil
		}
	}
	if parent := filepath.Dir(path); parent != path {
		return untrusted(parent, me, links)
	}
	return "", "", nil
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
