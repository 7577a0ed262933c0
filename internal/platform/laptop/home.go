// SPDX-License-Identifier: Apache-2.0

package laptop

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
)

// ErrInUse says that another process owns the home. Join is the way in.
var ErrInUse = errors.New("the home is in use by another diwan")

// layoutVersion numbers the layout of a home. A home with a greater number
// was written by a newer diwan and is refused. Layout 2 has the storage of etcd
// 3.7, to which that of 3.6 is brought when it is opened, and not back.
const layoutVersion = 2

// Home is the directory that holds all state of one local cluster.
type Home string

// DefaultHome is $DIWAN_HOME, else diwan under the user's data directory
// ($XDG_DATA_HOME, or ~/.local/share).
func DefaultHome() (Home, error) {
	if dir := os.Getenv("DIWAN_HOME"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("cannot use DIWAN_HOME=%s: %w", dir, err)
		}
		return Home(abs), nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return Home(filepath.Join(dir, "diwan")), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a directory for diwan's data: %w; set DIWAN_HOME", err)
	}
	return Home(filepath.Join(user, ".local", "share", "diwan")), nil
}

// Path joins elements to the home.
func (h Home) Path(elem ...string) string {
	return filepath.Join(append([]string{string(h)}, elem...)...)
}

// Kubeconfig is the path of the credentials of the user who owns the home.
func (h Home) Kubeconfig() string { return h.Path("kubeconfig") }

// Logs is the directory of the containers' logs:
// <namespace>/<pod>/<container>/<attempt>.log.
func (h Home) Logs() string { return h.Path("logs") }

// Owner tells the process that owns the home, or 0 where none does.
func (h Home) Owner() int {
	file, err := os.Open(h.Path("lock"))
	if err != nil {
		return 0
	}
	defer file.Close()
	if unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return 0
	}
	text, _ := os.ReadFile(file.Name())
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return 0 // the name of an earlier owner
	}
	return pid
}

// lock is the ownership of a home; it ends with Unlock or with the process.
type lock struct{ file *os.File }

// lock makes this process the owner of the home, creating the home where it
// is missing. It fails with ErrInUse where another process is the owner.
func (h Home) lock() (*lock, error) {
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the home %s: %w; choose another with --home or DIWAN_HOME", h, err)
	}
	if err := h.trusted(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(h.Path("lock"), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the home %s: %w; choose another with --home or DIWAN_HOME", h, err)
	}
	if err := h.flock(file); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot own %s: %w (process %d)", h, ErrInUse, h.Owner())
		}
		return nil, fmt.Errorf("cannot lock the home %s: %w", h, err)
	}
	if err := file.Truncate(0); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot write to the home %s: %w", h, err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot write to the home %s: %w", h, err)
	}
	if err := h.checkLayout(); err != nil {
		file.Close()
		return nil, err
	}
	return &lock{file: file}, nil
}

// patience is how long a lock that no living owner holds is waited for. Owner
// takes it for an instant to see whether it is free, and a child that an owner
// was just starting when it was killed holds it until it runs its program,
// which takes a busy machine a while.
const patience = 10 * time.Second

func (h Home) flock(file *os.File) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || h.Owner() != 0 || time.Now().After(deadline) {
			return err
		}
	}
}

// Unlock gives the home up.
func (l *lock) Unlock() error { return l.file.Close() }

// layout is what a home says of itself.
type layout struct {
	Version int `json:"version"`
}

// checkLayout refuses a home of a newer diwan, and marks a new one and one of an
// older.
func (h Home) checkLayout() error {
	text, err := os.ReadFile(h.Path("layout.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return h.markLayout()
	}
	if err != nil {
		return fmt.Errorf("cannot read the home %s: %w", h, err)
	}
	var have layout
	if err := json.Unmarshal(text, &have); err != nil {
		return fmt.Errorf("cannot read %s: %w; the home is damaged: move it away, or choose another with --home", h.Path("layout.json"), err)
	}
	if have.Version > layoutVersion {
		return fmt.Errorf("the home %s was written by a newer diwan (layout %d, this one knows %d): upgrade diwan, or choose another home with --home", h, have.Version, layoutVersion)
	}
	if have.Version < layoutVersion {
		return h.markLayout()
	}
	return nil
}

func (h Home) markLayout() error {
	text, err := json.Marshal(layout{Version: layoutVersion})
	if err != nil {
		return err
	}
	return writeFile(h.Path("layout.json"), text, 0o600)
}

// writeFile replaces a file in one step, so that no reader sees a part of it.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
