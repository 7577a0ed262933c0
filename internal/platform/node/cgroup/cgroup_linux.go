// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/flock"
)

// Groups makes cgroups. A nil *Groups makes none. Of a run's groups, the
// unified one (cgroup v2) is for membership and, where it has the controllers,
// for limits; the legacy ones (v1) are for limits elsewhere.
type Groups struct {
	base   string            // the parent of unified groups; "" when there are none
	has    map[string]bool   // controllers of the base's children
	legacy map[string]string // controller to the parent of legacy groups
	owned  []*os.File        // the parents, locked while this runtime lives
}

// Open finds or makes the parents, and removes what dead runtimes left. dir
// names the runtime, so that two runtimes do not share a parent.
func Open(dir string) *Groups {
	name := Name(dir)
	g := &Groups{has: map[string]bool{}, legacy: map[string]string{}}
	own := ownGroups()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if isUnified(mount) {
			g.openUnified(mount, own[""], name)
			break
		}
	}
	for _, c := range []string{"memory", "cpu", "pids"} {
		mount := filepath.Join("/sys/fs/cgroup", c)
		if _, err := os.Stat(filepath.Join(mount, "tasks")); err != nil || g.has[c] {
			continue
		}
		parent := filepath.Join(mount, own[c], name)
		if g.own(parent) == nil && unix.Access(filepath.Join(parent, "tasks"), unix.W_OK) == nil {
			g.legacy[c] = parent
		}
	}
	return g
}

// openUnified makes the unified parent: at the top where the rights allow it,
// else below the group of this process.
func (g *Groups) openUnified(mount, own, name string) {
	for _, parent := range []string{mount, filepath.Join(mount, own)} {
		base := filepath.Join(parent, name)
		if g.own(base) != nil {
			continue
		}
		if !canEnter(base) {
			os.Remove(base)
			continue
		}
		g.base = base
		for _, c := range []string{"memory", "cpu", "pids"} {
			write(parent, "cgroup.subtree_control", "+"+c) // may be so already
			if write(base, "cgroup.subtree_control", "+"+c) == nil {
				g.has[c] = true
			}
		}
		return
	}
}

// own makes a parent of groups and locks it, and removes the parents beside it
// whose runtimes are dead. Others may pass through it, but not open and lock it.
func (g *Groups) own(parent string) error {
	g.sweep(filepath.Dir(parent))
	for range flock.Attempts {
		if err := os.Mkdir(parent, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		file, err := flock.Try(parent, unix.LOCK_EX)
		switch {
		case err == nil:
			g.owned = append(g.owned, file)
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		time.Sleep(time.Millisecond) // somebody looks whether it has an owner
	}
	return nil // another runtime on the same directory has it
}

// sweep removes the groups of dead runtimes in which nothing runs any more. One
// whose run the kernel killed stays, to tell the runtime that may come back.
func (g *Groups) sweep(dir string) {
	parents, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*"))
	for _, parent := range parents {
		file, err := flock.Try(parent, unix.LOCK_EX)
		if err != nil {
			continue // its runtime lives, or is another user's
		}
		g.clear(parent)
		file.Close()
	}
}

// clear removes a parent with the groups in it, but for those in which something
// runs, and those whose run the kernel killed.
func (g *Groups) clear(parent string) {
	removeEmpty(parent, func(child string) bool { return g.OOMKilled([]string{child}) })
	unix.Rmdir(parent)
}

// removeEmpty removes the groups in a parent that have no processes.
func removeEmpty(parent string, keep func(child string) bool) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if child := filepath.Join(parent, e.Name()); e.IsDir() && !keep(child) {
			unix.Rmdir(child)
		}
	}
}

// Tidy removes the groups but for the known ones: what was created for runs that never
// started.
func (g *Groups) Tidy(known []string) {
	if g == nil {
		return
	}
	for parent := range g.parents() {
		removeEmpty(parent, func(child string) bool { return slices.Contains(known, child) })
	}
}

// parents are the directories in which groups are made.
func (g *Groups) parents() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, parent := range g.legacy {
			if !yield(parent) {
				return
			}
		}
		if g.base != "" {
			yield(g.base)
		}
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

// Create makes the groups of a run. What cannot be made is a warning.
func (g *Groups) Create(id container.ID, l container.Limits) (dirs, warnings []string) {
	if g == nil {
		return nil, unlimited(l, "cgroups are disabled")
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
	need := map[string]bool{"memory": l.Memory > 0, "cpu": l.CPU > 0 || l.CPURequest > 0, "pids": l.PIDs > 0}
	for c, parent := range g.legacy {
		if need[c] || c == "memory" { // which also tells what was used
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
	if need["pids"] {
		limitPIDs(made["pids"], l.PIDs)
	}
	return dirs, warnings
}

// errNoGroup says that this process may not make the group that a limit needs.
var errNoGroup = errors.New("no cgroup is delegated to this user for it")

func (g *Groups) limitMemory(dir string, l container.Limits) error {
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
func (g *Groups) limitCPU(dir string, l container.Limits) error {
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

// Enter lets a process start in the unified group. leave is called after.
func (g *Groups) Enter(dirs []string, sys *syscall.SysProcAttr) (leave func(), err error) {
	if !g.Unified(dirs) {
		return func() {}, nil
	}
	dir, err := os.Open(dirs[0])
	if err != nil {
		return nil, fmt.Errorf("cannot open the cgroup: %w", err)
	}
	sys.UseCgroupFD, sys.CgroupFD = true, int(dir.Fd())
	return func() { dir.Close() }, nil
}

// Join moves the calling thread into the legacy groups.
func (g *Groups) Join(dirs []string) error {
	for _, dir := range dirs {
		if g.isLegacy(dir) {
			if err := write(dir, "tasks", strconv.Itoa(unix.Gettid())); err != nil {
				return fmt.Errorf("cannot join the cgroup: %w", err)
			}
		}
	}
	return nil
}

// Unified reports whether the run's processes are in a unified group.
func (g *Groups) Unified(dirs []string) bool {
	return g != nil && len(dirs) > 0 && !g.isLegacy(dirs[0])
}

func (g *Groups) isLegacy(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "tasks"))
	return err == nil
}

// Kill kills every process of the groups, but this one: a thread by which a run
// began is in its legacy groups until the thread has ended. Where the number of processes
// is bounded, none can make another meanwhile.
func (g *Groups) Kill(dirs []string) {
	for _, dir := range dirs {
		write(dir, "pids.max", "0")
	}
	for _, dir := range dirs {
		if write(dir, "cgroup.kill", "1") == nil {
			continue
		}
		for _, pid := range Members(dir) {
			if pid != os.Getpid() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// Remove removes the groups. It reports whether they are gone; processes in them
// are killed first.
func (g *Groups) Remove(dirs []string) bool {
	gone := true
	for _, dir := range dirs {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			g.Kill([]string{dir})
			gone = false
		}
	}
	return gone
}

// OOMKilled reports whether the kernel OOM-killed in the groups.
func (g *Groups) OOMKilled(dirs []string) bool {
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

// Used returns the groups' CPU time and peak memory; 0 if not available.
func (g *Groups) Used(dirs []string) (cpu time.Duration, peak int64) {
	if g == nil {
		return 0, 0
	}
	for _, dir := range dirs {
		for _, name := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
				peak = max(peak, n)
			}
		}
		text, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		for line := range strings.Lines(string(text)) {
			if usec, ok := strings.CutPrefix(strings.TrimSpace(line), "usage_usec "); ok {
				n, _ := strconv.ParseInt(usec, 10, 64)
				cpu = max(cpu, time.Duration(n)*time.Microsecond)
			}
		}
	}
	return cpu, peak
}

// Close removes the parents, unless something runs in them. A run that could not
// start may have left its group: the thread that was to start it was still inside.
func (g *Groups) Close() {
	if g == nil {
		return
	}
	for parent := range g.parents() {
		g.clear(parent)
	}
	for _, file := range g.owned {
		file.Close()
	}
}

// Members are the processes of a group.
func Members(dir string) []int {
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
