// SPDX-License-Identifier: Apache-2.0

package process

import (
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

	"diwan.dev/diwan/internal/node/container"
)

// state is the directory of one run, <pod>/run.<container>.<attempt>:
//
//	spec.json    what was asked for (0600: it holds the environment)
//	run          the shim's lines, locked while the shim lives; it is made when
//	             spec.json is complete, so without it the program never started
//	killed       exists once Kill was called
//	interrupted  exists once Interrupt was called
type state struct{ dir string }

// record is the content of spec.json.
type record struct {
	Spec container.Spec `json:"spec"`
	// Groups are the control groups of the run.
	Groups []string `json:"groups,omitempty"`
}

// stateOf is the directory of a run under root.
func stateOf(root string, id container.ID) state {
	return state{filepath.Join(root, id.Pod, fmt.Sprintf("run.%s.%d", id.Name, id.Attempt))}
}

func (s state) path(name string) string { return filepath.Join(s.dir, name) }

// create makes the directory. It fails where the run is known already.
func (s state) create() error {
	err := os.Mkdir(s.dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(s.dir), 0o711); err == nil {
			err = os.Mkdir(s.dir, 0o700)
		}
	}
	return err
}

// lock makes the locked run file. The lock ends when every holder of the file
// has closed it.
func (s state) lock() (*os.File, error) {
	file, err := os.OpenFile(s.path("run"), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// write stores the record.
func (s state) write(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path("spec.json"), text, 0o600)
}

// read returns the record and the time at which it was written.
func (s state) read() (record, time.Time, error) {
	var r record
	text, err := os.ReadFile(s.path("spec.json"))
	if err != nil {
		return r, time.Time{}, err
	}
	info, err := os.Stat(s.path("spec.json"))
	if err != nil {
		return r, time.Time{}, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, time.Time{}, fmt.Errorf("cannot read %s: %w", s.path("spec.json"), err)
	}
	return r, info.ModTime(), nil
}

// report is what the run file says.
type report struct {
	pid     int       // 0: not written
	ended   bool      // the exit code is there
	code    int32     //
	at      time.Time // when the file changed last
	running bool      // the lock is held
}

// look reads the run file. The lock is looked at first: a shim writes its last
// line before it gives the lock up, so "not running and not ended" is final.
func (s state) look() (report, error) {
	var r report
	file, err := os.Open(s.path("run"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer file.Close()
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		r.running = true
	case err != nil:
		return r, fmt.Errorf("cannot look at the lock of %s: %w", file.Name(), err)
	}
	var text [64]byte
	n, _ := file.ReadAt(text[:], 0)
	if info, err := file.Stat(); err == nil {
		r.at = info.ModTime()
	}
	r.parse(string(text[:n]))
	return r, nil
}

// parse reads the shim's lines. A line without its end does not count.
func (r *report) parse(text string) {
	lines := strings.SplitAfter(text, "\n")
	number := func(i int) (int, bool) {
		if i >= len(lines) || !strings.HasSuffix(lines[i], "\n") {
			return 0, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(lines[i]))
		return n, err == nil && n >= 0
	}
	if pid, ok := number(0); ok && pid > 0 {
		r.pid = pid
		if code, ok := number(1); ok && code < 256 {
			r.ended, r.code = true, int32(code)
		}
	}
}

// mark creates an empty file that says something happened.
func (s state) mark(name string) error {
	file, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// marked tells whether a mark is there, and since when.
func (s state) marked(name string) (time.Time, bool) {
	info, err := os.Stat(s.path(name))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// Living are the processes of the runs that live now in the state directory
// root, whichever process started them.
func Living(root string) []int {
	states, _ := list(root)
	var pids []int
	for _, st := range states {
		if saw, err := st.look(); err == nil && saw.running && saw.pid > 0 {
			pids = append(pids, saw.pid)
		}
	}
	return pids
}

// list finds the directories of all runs under root.
func list(root string) ([]state, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "*", "run.*.*"))
	if err != nil {
		return nil, err
	}
	states := make([]state, len(dirs))
	for i, dir := range dirs {
		states[i] = state{dir}
	}
	return states, nil
}
