// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/testing/freeport"
)

// TestMain makes this test binary a process that owns a home when told to.
func TestMain(m *testing.M) {
	if home := os.Getenv("DIWAN_TEST_OWN_HOME"); home != "" {
		if _, err := Home(home).lock(); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("owned\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestHomeHasOneOwnerAndOutlivesItsDeath(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "DIWAN_TEST_OWN_HOME="+string(home))
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil {
		t.Fatal(err)
	}
	if _, err := home.lock(); !errors.Is(err, ErrInUse) {
		t.Errorf("a second owner got %v, want ErrInUse", err)
	}
	if got := home.Owner(); got != owner.Process.Pid {
		t.Errorf("the owner is %d, want %d", got, owner.Process.Pid)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if got := home.Owner(); got != 0 {
		t.Errorf("a killed process %d still owns the home", got)
	}
	l, err := home.lock()
	if err != nil {
		t.Fatalf("the home of a killed process cannot be owned: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestHomeIsWaitedForWhileADyingOwnerHoldsIt stands for a child that a killed
// owner was just starting: it holds the lock, and is no owner.
func TestHomeIsWaitedForWhileADyingOwnerHoldsIt(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	child, err := os.Create(home.Path("lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(child.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { child.Close() })
	l, err := home.lock()
	if err != nil {
		t.Fatalf("the home cannot be owned: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestHomeOfANewerDiwanIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ reason, layout, want string }{
		{"a greater layout version was written by a newer program", `{"version":99}`, "newer diwan"},
		{"a layout file that is not JSON is named, not overwritten", `{"vers`, "damaged"},
	} {
		home := Home(t.TempDir())
		if err := os.WriteFile(home.Path("layout.json"), []byte(tc.layout), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := home.lock()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
		}
	}
}

func TestHomeOfAnOlderDiwanIsMarked(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	if err := os.WriteFile(home.Path("layout.json"), []byte(`{"version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := home.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Unlock() }()
	if text, err := os.ReadFile(home.Path("layout.json")); err != nil || string(text) != `{"version":2}` {
		t.Errorf("the home says %s, %v", text, err)
	}
}

func TestHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Home(file).lock()
	if err == nil || !strings.Contains(err.Error(), "--home") {
		t.Errorf("got %v, want an error that names a remedy", err)
	}
}

func TestListenKeepsItsPort(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	first, err := home.listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if kept, err := os.ReadFile(home.Path("port")); err != nil || string(kept) != fmt.Sprintln(portOf(first)) {
		t.Errorf("the home keeps the port %q of %s: %v", kept, first.Addr(), err)
	}
	// One that the system does not give to others in between.
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	if err := os.WriteFile(home.Path("port"), []byte(port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := home.listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if got := second.Addr().String(); got != address {
		t.Errorf("listens on %s after a restart, want %s", got, address)
	}
	third, err := home.listen(0)
	if err != nil {
		t.Fatalf("a taken port is not a reason to fail when none was asked for: %v", err)
	}
	third.Close()
}

func TestListenOnATakenPort(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	l, err := home.listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := portOf(l)
	if _, err := home.listen(port); err == nil || !strings.Contains(err.Error(), "--port") {
		t.Errorf("got %v, want an error that names a remedy", err)
	}
}

func TestPKIKeepsGoodPairsAndRenewsOldOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	read := func() string {
		t.Helper()
		keys, err := openPKI(dir, clock)
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.server("server", "127.0.0.1", "localhost"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(keys.file("server"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := read()
	if read() != first {
		t.Error("a good certificate was made again")
	}
	now = now.Add(certificateLife - renewBefore + time.Hour)
	renewed := read()
	if renewed == first {
		t.Error("a certificate that ends soon was kept")
	}
	if info, err := os.Stat(filepath.Join(dir, "server.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, want 0600 (%v)", info.Mode(), err)
	}
}
