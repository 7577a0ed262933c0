// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
)

// groups makes control groups. A nil *groups makes none. Of a run's groups, the
// unified one (cgroup v2) is for membership and, where it has the controllers,
// for limits; the legacy ones (v1) are for limits elsewhere.
type groups struct {
	base   string            // the parent of unified groups; "" when there are none
	has    map[string]bool   // controllers of the base's children
	legacy map[string]string // controller to the parent of legacy groups
}

// openGroups finds or makes the parents. dir names the runtime, so that two
// runtimes do not share a parent.
func openGroups(dir string) *groups {
	hash := fnv.New32a()
	hash.Write([]byte(dir))
	name := fmt.Sprintf("diwan-%08x", hash.Sum32())
	g := &groups{has: map[string]bool{}, legacy: map[string]string{}}
	own := ownGroups()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if isUnified(mount) {
			g.openUnified(mount, own[""], name)
			break
		}
	}
	for _, c := range []string{"memory", "cpu"} {
		mount := filepath.Join("/sys/fs/cgroup", c)
		if _, err := os.Stat(filepath.Join(mount, "tasks")); err != nil || g.has[c] {
			continue
		}
		parent := filepath.Join(mount, own[c], name)
		if os.MkdirAll(parent, 0o755) == nil && unix.Access(filepath.Join(parent, "tasks"), unix.W_OK) == nil {
			g.legacy[c] = parent
		}
	}
	return g
}

// openUnified makes the unified parent: at the top where the rights allow it,
// else below the group of this process.
func (g *groups) openUnified(mount, own, name string) {
	for _, parent := range []string{mount, filepath.Join(mount, own)} {
		base := filepath.Join(parent, name)
		if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			continue
		}
		if !canEnter(base) {
			os.Remove(base)
			continue
		}
		g.base = base
		for _, c := range []string{"memory", "cpu"} {
			write(parent, "cgroup.subtree_control", "+"+c) // may be so already
			if write(base, "cgroup.subtree_control", "+"+c) == nil {
				g.has[c] = true
			}
		}
		return
	}
}

// canEnter tries to start a program in a child of base: old kernels and
// sandboxes cannot. Earlier tries that were killed are cleared away.
func canEnter(base string) bool {
	stale, _ := filepath.Glob(filepath.Join(base, "probe-*"))
	for _, dir := range stale {
		unix.Rmdir(dir)
	}
	dir := filepath.Join(base, fmt.Sprintf("probe-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return false
	}
	defer unix.Rmdir(dir)
	file, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer file.Close()
	try := exec.Command("/bin/sh", "-c", ":")
	try.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(file.Fd())}
	return try.Run() == nil
}

// create makes the groups of a run. What cannot be made is a warning.
func (g *groups) create(id container.ID, l container.Limits) (dirs, warnings []string) {
	if g == nil {
		return nil, unlimited(l, "control groups are switched off")
	}
	name := fmt.Sprintf("%s.%s.%d", id.Pod, id.Name, id.Attempt)
	made := map[string]string{}
	add := func(parent string) string {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return ""
		}
		dirs = append(dirs, dir)
		return dir
	}
	if g.base != "" {
		if dir := add(g.base); dir != "" {
			for c := range g.has {
				made[c] = dir
			}
		}
	}
	need := map[string]bool{"memory": l.Memory > 0, "cpu": l.CPU > 0 || l.CPURequest > 0}
	for c, parent := range g.legacy {
		if need[c] {
			made[c] = add(parent)
		}
	}
	if need["memory"] {
		if err := g.limitMemory(made["memory"], l); err != nil {
			warnings = append(warnings, fmt.Sprintf("the memory limit is not enforced: %v", err))
		}
	}
	if need["cpu"] {
		if err := g.limitCPU(made["cpu"], l); err != nil && l.CPU > 0 {
			warnings = append(warnings, fmt.Sprintf("the CPU limit is not enforced: %v", err))
		}
	}
	return dirs, warnings
}

// errNoGroup says that this process may not make the group that a limit needs.
var errNoGroup = errors.New("this machine gives this user no control group for it")

func (g *groups) limitMemory(dir string, l container.Limits) error {
	limit := strconv.FormatInt(l.Memory, 10)
	switch {
	case dir == "":
		return errNoGroup
	case g.has["memory"]:
		write(dir, "memory.swap.max", "0") // absent without swap accounting
		return write(dir, "memory.max", limit)
	}
	err := write(dir, "memory.limit_in_bytes", limit)
	write(dir, "memory.memsw.limit_in_bytes", limit)
	return err
}

// limitCPU uses kubelet's numbers: a period of 100 ms, a quota of at least 1 ms,
// 1024 shares a core, and the kernel's mapping from shares to weights.
func (g *groups) limitCPU(dir string, l container.Limits) error {
	if dir == "" {
		return errNoGroup
	}
	const period = 100_000
	quota := max(l.CPU*period/1000, 1000)
	shares := min(max(l.CPURequest*1024/1000, 2), 262144)
	var err error
	if g.has["cpu"] {
		if l.CPU > 0 {
			err = write(dir, "cpu.max", fmt.Sprintf("%d %d", quota, period))
		}
		return errors.Join(err, write(dir, "cpu.weight", strconv.FormatInt(1+(shares-2)*9999/262142, 10)))
	}
	if l.CPU > 0 {
		write(dir, "cpu.cfs_period_us", strconv.Itoa(period))
		err = write(dir, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
	}
	return errors.Join(err, write(dir, "cpu.shares", strconv.FormatInt(shares, 10)))
}

// enter lets a process start in the unified group. leave is called after.
func (g *groups) enter(dirs []string, sys *syscall.SysProcAttr) (leave func(), err error) {
	if !g.unified(dirs) {
		return func() {}, nil
	}
	dir, err := os.Open(dirs[0])
	if err != nil {
		return nil, fmt.Errorf("cannot open the control group: %w", err)
	}
	sys.UseCgroupFD, sys.CgroupFD = true, int(dir.Fd())
	return func() { dir.Close() }, nil
}

// join moves the calling thread into the legacy groups.
func (g *groups) join(dirs []string) error {
	for _, dir := range dirs {
		if g.isLegacy(dir) {
			if err := write(dir, "tasks", strconv.Itoa(unix.Gettid())); err != nil {
				return fmt.Errorf("cannot join the control group: %w", err)
			}
		}
	}
	return nil
}

// unified tells whether the run's processes are in a unified group.
func (g *groups) unified(dirs []string) bool {
	return g != nil && len(dirs) > 0 && !g.isLegacy(dirs[0])
}

func (g *groups) isLegacy(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "tasks"))
	return err == nil
}

// kill kills every process of the groups, but this one: a thread by which a run
// began is in its legacy groups until the thread has ended.
func (g *groups) kill(dirs []string) {
	for _, dir := range dirs {
		if write(dir, "cgroup.kill", "1") == nil {
			continue
		}
		for _, pid := range members(dir) {
			if pid != os.Getpid() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// remove removes the groups. It tells whether they are gone; processes in them
// are killed first.
func (g *groups) remove(dirs []string) bool {
	gone := true
	for _, dir := range dirs {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			g.kill([]string{dir})
			gone = false
		}
	}
	return gone
}

// oomKilled tells whether the kernel killed for want of memory in the groups.
func (g *groups) oomKilled(dirs []string) bool {
	for _, dir := range dirs {
		for _, name := range []string{"memory.events", "memory.oom_control"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
					return true
				}
			}
		}
	}
	return false
}

// close removes the parents, unless groups are left in them.
func (g *groups) close() {
	if g == nil {
		return
	}
	for _, parent := range g.legacy {
		unix.Rmdir(parent)
	}
	if g.base != "" {
		unix.Rmdir(g.base)
	}
}

// members are the processes of a group.
func members(dir string) []int {
	file, err := os.Open(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	defer file.Close()
	var pids []int
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ownGroups are the groups of this process by controller; "" is the unified one.
func ownGroups() map[string]string {
	own := map[string]string{}
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 {
			for c := range strings.SplitSeq(parts[1], ",") {
				own[c] = parts[2]
			}
		}
	}
	return own
}

func isUnified(mount string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(mount, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// write writes a control file; it never creates one.
func write(dir, name, text string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(text)
	return err
}
