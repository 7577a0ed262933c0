// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
	"diwan.dev/diwan/internal/testing/chance"
	"diwan.dev/diwan/internal/testing/testimage"
)

// TestKilledImages kills the platform, and the monitors of containers, again and again while it
// pulls images, unpacks them, and starts and stops containers in them. Each program runs once, all
// ends, and nothing is left.
func TestKilledImages(t *testing.T) {
	t.Parallel()
	t.Run("root", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		killsImages(t, &server{t: t, home: t.TempDir(), pull: true})
	})
	t.Run("user", func(t *testing.T) {
		if !*soak {
			t.Skip("only with -soak, see make soak")
		}
		rootlesstest.Need(t)
		killsImages(t, &server{t: t, home: rootlesstest.Home(t), user: true, pull: true})
	})
}

func killsImages(t *testing.T, s *server) {
	kills, jobs := 3, 9
	if *soak {
		kills, jobs = 40, 120
	}
	random := chance.New(t)
	images := slowImages(t, s.home, 3, random)
	dir := rootlesstest.Home(t) // where both may write
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	diary := filepath.Join(dir, "diary")
	if err := os.WriteFile(diary, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(diary, 0o666); err != nil {
		t.Fatal(err)
	}
	s.begin()
	var manifest strings.Builder
	for i := range jobs {
		fmt.Fprintf(&manifest, jobInImage, i, images[i%len(images)], dir)
	}
	fmt.Fprintf(&manifest, serverInImage, images[0])
	file := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(file, []byte(manifest.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	s.gives(t, "kubectl", "apply", "-f", file)
	for range kills {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // any moment is right
		if of := monitors(t, s.home, "server-"); len(of) > 0 {
			syscall.Kill(of[random.IntN(len(of))], syscall.SIGKILL)
		}
		s.gives(t, "kubectl", "delete", "pods", "-l", "app=server", "--wait=false", "--grace-period=1")
		s.kill()
		s.start()
	}
	eventually(t, 5*time.Minute, func() error {
		done := s.gives(t, "kubectl", "get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.succeeded}/{.status.failed}{"\n"}{end}`)
		if n := strings.Count(done, " 1/\n"); n != jobs {
			return fmt.Errorf("%d of %d jobs have succeeded:\n%s", n, jobs, done)
		}
		return nil
	})
	checkDiary(t, diary, jobs)
	s.gives(t, "kubectl", "wait", "--for=condition=Available", "--timeout=120s", "deployment/server")
	s.gives(t, "kubectl", "delete", "deployment", "server", "--cascade=foreground", "--timeout=90s")
	s.gives(t, "kubectl", "delete", "jobs", "--all", "--cascade=foreground", "--timeout=90s")
	eventually(t, time.Minute, func() error {
		if left := leftOfImages(t, s.home); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
	s.gives(t, "images", "prune", "--older-than", "0s")
	for _, part := range []string{"images", "names", "layers", "blobs", "work", "leases", "trash"} {
		if left, _ := os.ReadDir(filepath.Join(s.home, "image-store", part)); len(left) > 0 {
			t.Errorf("the store's %s still has %v", part, left)
		}
	}
	s.stop()
	group := cgroup.Name(filepath.Join(s.home, "node", "sandboxes"))
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == group {
			t.Errorf("the control group %s is left", path)
		}
		return nil
	})
}

// jobInImage writes into a diary, on which no part of the platform has a hand.
const jobInImage = `
apiVersion: batch/v1
kind: Job
metadata: {name: job-%[1]d}
spec:
  backoffLimit: 0
  template:
    spec:
      runtimeClassName: image
      restartPolicy: Never
      containers:
      - name: main
        image: %[2]s
        command: [sh, -c, "echo begin %[1]d >>/diary/diary; sleep 0.3; echo end %[1]d >>/diary/diary"]
        volumeMounts: [{name: diary, mountPath: /diary}]
      volumes: [{name: diary, hostPath: {path: %[3]s}}]
---`

const serverInImage = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 2
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      runtimeClassName: image
      containers:
      - name: server-main
        image: %s
        command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.1; done"]
`

// slowImages serves images with a common layer so slowly that a kill meets their pulling and
// unpacking, and has a home find them. It returns their names.
func slowImages(t *testing.T, home string, n int, random *rand.Rand) []string {
	r := testimage.Serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet && strings.Contains(q.URL.Path, "/blobs/") {
				w = &slowWriter{w}
			}
			h.ServeHTTP(w, q)
		})
	})
	shell := testimage.Layer(t, testimage.Shell(t)...)
	var names []string
	for i := range n {
		var files []testimage.File
		for j := range 100 {
			noise := make([]byte, 16<<10)
			for k := range noise {
				noise[k] = byte(random.Uint32())
			}
			files = append(files, testimage.Text(fmt.Sprintf("noise-%d-%d", i, j), string(noise)))
		}
		name := fmt.Sprintf("acme/slow-%d:v1", i)
		r.Push(t, name, testimage.Image(t, v1.Config{Env: []string{"PATH=/bin"}}, shell, testimage.Layer(t, files...)))
		names = append(names, "ghcr.io/"+name)
	}
	text := fmt.Sprintf("mirrors:\n- {prefix: ghcr.io, endpoints: [%q]}\n", r.Host)
	if err := os.WriteFile(filepath.Join(home, "registries.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return names
}

// slowWriter sends some 2 MB a second.
type slowWriter struct{ http.ResponseWriter }

func (w *slowWriter) Write(p []byte) (int, error) {
	sent := 0
	for len(p) > 0 {
		n, err := w.ResponseWriter.Write(p[:min(len(p), 32<<10)])
		if sent += n; err != nil {
			return sent, err
		}
		p = p[n:]
		time.Sleep(15 * time.Millisecond)
	}
	return sent, nil
}

// monitors are the processes that watch the home's containers whose names begin with a prefix.
func monitors(t *testing.T, home, prefix string) []int {
	t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte(early.Name+"\x00")) {
			continue
		}
		dir := filepath.Dir(path)
		file, err := os.Readlink(filepath.Join(dir, "fd", strconv.Itoa(early.RunFile)))
		if err != nil || !strings.HasPrefix(file, filepath.Join(home, "node", "sandboxes")+"/") || !strings.Contains(file, "/run."+prefix) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// leftOfImages are monitors, states of runs and mounts of a home's containers in images.
func leftOfImages(t *testing.T, home string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(home, "node", "sandboxes", "*", "run.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range monitors(t, home, "") {
		left = append(left, fmt.Sprintf("monitor %d", pid))
	}
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, path := range tables {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(filepath.Join(home, "node", "sandboxes"))) {
			left = append(left, "a mount in "+path)
		}
	}
	return left
}
