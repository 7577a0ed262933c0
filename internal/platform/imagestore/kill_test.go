// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/durable"
)

// pullerEnv makes the test binary a process that uses a store: "pull DIR NAME" pulls once, "loop DIR NAME"
// pulls and removes until it is killed.
const pullerEnv = "DIWAN_TEST_PULLER"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(pullerEnv)); len(args) == 3 {
		if err := puller(args[0], args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func puller(mode, dir, name string) error {
	n, err := ParseName(name)
	if err != nil {
		return err
	}
	for {
		s, err := Open(Config{Dir: dir, backoff: func(int) time.Duration { return time.Millisecond }})
		if err != nil {
			return err
		}
		if _, err := s.Pull(context.Background(), n, PullOptions{}); err != nil || mode == "pull" {
			return err
		}
		if _, err := s.Prune(context.Background(), PruneOptions{All: true}); err != nil {
			return err
		}
	}
}

// startPuller starts such a process. The result waits for its end.
func startPuller(t testing.TB, mode, dir string, n Name) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), pullerEnv+"="+mode+" "+dir+" "+n.String())
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that failed before it waited
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// TestKilled: at whatever moment a process is killed that pulls and removes an image, the next one
// finds nothing or the whole image.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var layers []v1.Layer
	want := make(map[string]string)
	for l := range 6 {
		var entries []entry
		for f := range 20 {
			name, content := fmt.Sprintf("d%d/f%d", f%4, f), random(rand.IntN(20_000))
			entries = append(entries, file(name, content))
			want[name] = content
		}
		name := fmt.Sprintf("only-%d", l)
		want[name] = name
		entries = append(entries, file(name, name))
		layers = append(layers, layerOf(t, tarOf(t, entries...)))
	}
	n := h.push(t, "app", imageOf(t, layers...))
	dir := t.TempDir()
	t.Cleanup(func() { removeStore(t, dir) })
	whole := 0
	for range 25 {
		cmd := startPuller(t, "loop", dir, n)
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // a random moment, not a wait for something
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("it ended by itself: %v", err)
		}
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		images, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, img := range images {
			whole++
			checkFiles(t, img, want)
			for _, name := range img.Names() { // none, if it was killed while it removed them
				if err := s.Save(t.Context(), io.Discard, parse(t, name)); err != nil {
					t.Error(err)
				}
			}
		}
		chains, err := os.ReadDir(s.path("layers"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chains {
			if _, err := s.layerInfo("sha256:" + c.Name()); err != nil {
				t.Errorf("a layer is not whole: %v", err)
			}
		}
	}
	t.Logf("%d times the image was there", whole)
	s := openStore(t, Config{Dir: dir})
	checkFiles(t, pull(t, s, n), want)
	if _, err := s.Prune(t.Context(), PruneOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"images", "names", "blobs", "layers", "work", "leases", "trash"} {
		entries, err := os.ReadDir(s.path(d))
		if err != nil || d == "blobs" && onlyTemporary(entries) {
			continue
		}
		if len(entries) != 0 {
			t.Errorf("%s is left in %s", entries, d)
		}
	}
}

// onlyTemporary: a killed writer's files are kept for an hour.
func onlyTemporary(entries []os.DirEntry) bool {
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), durable.TempPrefix) {
			return false
		}
	}
	return true
}

func checkFiles(t testing.TB, img *Image, want map[string]string) {
	t.Helper()
	v, err := img.View()
	if err != nil {
		t.Error(err)
		return
	}
	defer v.Close()
	for name, content := range want {
		if b, err := v.ReadFile(name, 1<<20); err != nil || string(b) != content {
			t.Errorf("%s has %d bytes, %v, and should have %d", name, len(b), err, len(content))
		}
	}
}

// TestKilledPullResumes: what a killed process fetched is not fetched again.
func TestKilledPullResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layer := layerOf(t, tarOf(t, file("big", random(4<<20))))
	n := h.push(t, "app", imageOf(t, layer))
	digest, blob := blobOf(t, layer)
	h.mu.Lock()
	clear(h.sent) // of pushing
	h.mu.Unlock()
	var mu sync.Mutex
	var starts []int64
	stop := int64(len(blob)) / 3
	h.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, digest) {
			return false
		}
		var start int64
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start)
		mu.Lock()
		starts = append(starts, start)
		end := stop
		mu.Unlock()
		w.Header().Set("Content-Length", fmt.Sprint(int64(len(blob))-start))
		if start > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(blob)-1, len(blob)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(blob[start:end])
		w.(http.Flusher).Flush()
		if end < int64(len(blob)) {
			<-r.Context().Done()
		}
		return true
	})
	dir := t.TempDir()
	t.Cleanup(func() { removeStore(t, dir) })
	for range 2 {
		cmd := startPuller(t, "pull", dir, n)
		mu.Lock()
		want := stop
		mu.Unlock()
		for start := time.Now(); partialSize(dir) != want; {
			if time.Since(start) > time.Minute {
				t.Fatalf("the partial blob has %d bytes, not %d", partialSize(dir), want)
			}
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		mu.Lock()
		stop = want * 2
		mu.Unlock()
	}
	mu.Lock()
	stop = int64(len(blob))
	mu.Unlock()
	cmd := startPuller(t, "pull", dir, n)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	third := int64(len(blob)) / 3
	mu.Lock()
	defer mu.Unlock()
	if want := []int64{0, third, 2 * third}; fmt.Sprint(starts) != fmt.Sprint(want) {
		t.Errorf("requests began at the bytes %d, want %d", starts, want)
	}
	if got := h.bytes("/v2/app/blobs/" + digest); got != int64(len(blob)) {
		t.Errorf("%d bytes were sent of %d", got, len(blob))
	}
}

func partialSize(dir string) int64 {
	all, _ := filepath.Glob(filepath.Join(dir, "work", "*", partialBlob))
	for _, p := range all {
		if info, err := os.Stat(p); err == nil {
			return info.Size()
		}
	}
	return -1
}

// TestOrdinaryUser runs the package's tests once more as an ordinary user.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("all tests run as an ordinary user already")
	}
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || !strings.Contains(string(ids), "4294967295") {
		t.Skip("root of a user namespace cannot become another user")
	}
	dir, err := os.MkdirTemp("", "diwan-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeStore(t, dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	// A process that another test starts meanwhile would hold the file open for writing, and it could not
	// be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(binary, b, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^(TestPull|TestPullSharesLayers|TestSaveAndLoad|TestPrune|TestUser|TestUnreadableImage)$", "-test.v=true")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: Test") < 6 {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestProcesses: several processes pull one image, and fetch it once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layers := []v1.Layer{layerOf(t, tarOf(t, file("a", random(1<<20)))), layerOf(t, tarOf(t, file("b", random(1<<20))))}
	n := h.push(t, "app", imageOf(t, layers...))
	dir := t.TempDir()
	t.Cleanup(func() { removeStore(t, dir) })
	var pullers []*exec.Cmd
	for range 4 {
		pullers = append(pullers, startPuller(t, "pull", dir, n))
	}
	for _, p := range pullers {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, l := range layers {
		digest, _ := blobOf(t, l)
		if got := h.count("GET /v2/app/blobs/" + digest); got != 1 {
			t.Errorf("a layer was fetched %d times", got)
		}
	}
}

// TestOpenSweeps: what killed processes left goes, but for what can be resumed.
func TestOpenSweeps(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	fresh, old := s.path("work", strings.Repeat("a", 64)), s.path("work", strings.Repeat("b", 64))
	for _, d := range []string{fresh, old, s.path("trash", "x")} {
		if err := os.MkdirAll(filepath.Join(d, newLayer, layerRoot, "unreadable"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, partialBlob), []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(d, newLayer, layerRoot, "unreadable"), 0); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * partialAge)
	if err := os.Chtimes(filepath.Join(old, partialBlob), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	want := "[work/" + filepath.Base(fresh) + "]"
	if got := fmt.Sprint(workDirs(t, s)); got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if got := globNames(t, s, filepath.Join("work", filepath.Base(fresh))); len(got) != 1 || got[0] != partialBlob {
		t.Errorf("left are %q", got)
	}
}

// TestDamagedPartialBlob: a partial blob that is not the blob's beginning costs time, not the image.
func TestDamagedPartialBlob(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	layer := layerOf(t, tarOf(t, file("a", "content")))
	n := h.push(t, "app", imageOf(t, layer))
	_, blob := blobOf(t, layer)
	diffID, err := layer.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	for name, partial := range map[string][]byte{
		"other bytes": []byte("damaged"), "too long": append(blob, "and more"...), "complete": blob, "complete and wrong": make([]byte, len(blob)), "empty": nil,
	} {
		s := newStore(t)
		work := s.path("work", digestHex(diffID.String()))
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, partialBlob), partial, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := s.Pull(t.Context(), n, PullOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := read(t, img, "a"); got != "content" {
			t.Errorf("%s: a is %q", name, got)
		}
	}
}
