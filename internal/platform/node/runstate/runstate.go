// SPDX-License-Identifier: Apache-2.0

package runstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// Dir is the directory of one run, <pod>/run.<container>.<attempt>:
//
//	spec.json    what was asked for (0600: it holds the environment)
//	run          the lines of a Report, locked while the run's shim or monitor lives; it is made when
//	             spec.json is complete, so without it the program never started
//	keeper       locked while the run's keeper lives; keeper.sock leads to it
//	killed       exists once Kill was called
//	interrupted  exists once Interrupt was called
type Dir string

// Record is the content of spec.json.
type Record struct {
	Spec container.Spec `json:"spec"`
	// Groups are the cgroups of the run.
	Groups []string `json:"groups,omitempty"`
}

// Of is the directory of a run under root.
func Of(root string, id container.ID) Dir {
	return Dir(filepath.Join(root, id.Pod, fmt.Sprintf("run.%s.%d", id.Name, id.Attempt)))
}

// Path is the path of a file in the directory.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Create makes the directory. It fails where the run is known already.
func (d Dir) Create() error {
	err := os.Mkdir(string(d), 0o700)
	for range 10 { // the Pod's last run may be removed meanwhile, with its directory
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err = os.MkdirAll(filepath.Dir(string(d)), 0o711); err == nil {
			err = os.Mkdir(string(d), 0o700)
		}
	}
	return err
}

// Lock makes the locked run file. The lock ends when every holder of the file
// has closed it.
func (d Dir) Lock() (*os.File, error) {
	file, err := os.OpenFile(d.Path("run"), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Write stores the record.
func (d Dir) Write(r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(d.Path("spec.json"), text, 0o600)
}

// Read returns the record and the time at which it was written.
func (d Dir) Read() (Record, time.Time, error) {
	var r Record
	text, err := os.ReadFile(d.Path("spec.json"))
	if err != nil {
		return r, time.Time{}, err
	}
	info, err := os.Stat(d.Path("spec.json"))
	if err != nil {
		return r, time.Time{}, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, time.Time{}, fmt.Errorf("cannot read %s: %w", d.Path("spec.json"), err)
	}
	return r, info.ModTime(), nil
}

// Report is the content of the run file.
type Report struct {
	PID     int       // the run's first process; 0: not written
	Began   uint64    // when it started, in ticks since the machine did; 0: not told
	Ended   bool      // the exit code is there
	Code    int32     //
	At      time.Time // when the file changed last
	Running bool      // the lock is held
}

// Look reads the run file. The lock is looked at first: a shim writes its last
// line before it gives the lock up, so "not running and not ended" is final.
func (d Dir) Look() (Report, error) {
	var r Report
	file, err := os.Open(d.Path("run"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer file.Close()
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		r.Running = true
	case err != nil:
		return r, fmt.Errorf("cannot check the lock of %s: %w", file.Name(), err)
	}
	var text [64]byte
	n, _ := file.ReadAt(text[:], 0)
	if info, err := file.Stat(); err == nil {
		r.At = info.ModTime()
	}
	r.parse(string(text[:n]))
	return r, nil
}

// parse reads the lines: PID, perhaps with Began, and the code. A line without its end does
// not count.
func (r *Report) parse(text string) {
	first, rest, complete := strings.Cut(text, "\n")
	pid, began, _ := strings.Cut(strings.TrimSpace(first), " ")
	n, err := strconv.Atoi(pid)
	if !complete || err != nil || n <= 0 {
		return
	}
	r.PID = n
	r.Began, _ = strconv.ParseUint(began, 10, 64)
	second, _, complete := strings.Cut(rest, "\n")
	if code, err := strconv.Atoi(strings.TrimSpace(second)); complete && err == nil && code >= 0 && code < 256 {
		r.Ended, r.Code = true, int32(code)
	}
}

// Settle looks until what the run does is certain. A lock without a process in the file is
// transient: of a run that has just started, or of the fork of another program by a node
// that was killed.
func (d Dir) Settle(ctx context.Context) (Report, error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		saw, err := d.Look()
		if err != nil || !saw.Running || saw.PID > 0 {
			return saw, err
		}
		select {
		case <-ctx.Done():
			return saw, ctx.Err()
		case <-tick.C:
		}
	}
}

// Mark creates an empty file that says something happened.
func (d Dir) Mark(name string) error {
	file, err := os.OpenFile(d.Path(name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// Marked reports whether a mark exists, and since when.
func (d Dir) Marked(name string) (time.Time, bool) {
	info, err := os.Stat(d.Path(name))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// Living are the processes of the runs that live now in the state directory
// root, whichever process started them.
func Living(root string) []int {
	states, _ := List(root)
	var pids []int
	for _, st := range states {
		if saw, err := st.Look(); err == nil && saw.Running && saw.PID > 0 {
			pids = append(pids, saw.PID)
		}
	}
	return pids
}

// List finds the directories of all runs under root.
func List(root string) ([]Dir, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "*", "run.*.*"))
	if err != nil {
		return nil, err
	}
	states := make([]Dir, len(dirs))
	for i, dir := range dirs {
		states[i] = Dir(dir)
	}
	return states, nil
}
