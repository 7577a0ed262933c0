// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestOldLogsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	n := &Node{cfg: Config{LogDir: dir, LogAge: time.Hour, LogBytes: 100 << 10}}
	write := func(path string, size int, age time.Duration) {
		full := filepath.Join(dir, path)
		os.MkdirAll(filepath.Dir(full), 0o700)
		if err := os.WriteFile(full, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		os.Chtimes(full, at, at)
	}
	write("ns/ancient/main/0.log", 10, 2*time.Hour)
	write("ns/big-old/main/0.log", 64<<10, 30*time.Minute)
	write("ns/big-new/main/0.log", 64<<10, 20*time.Minute)
	write("ns/small/main/0.log", 10, 10*time.Minute)
	n.cleanLogs()
	var left []string
	filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			left = append(left, rel)
		}
		return nil
	})
	want := []string{"ns", "ns/big-new", "ns/big-new/main", "ns/big-new/main/0.log", "ns/small", "ns/small/main", "ns/small/main/0.log"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("too old, and the oldest beyond the bound, go (-want +got):\n%s", diff)
	}
}

// TestLogsOfTheLastPod makes Pods of one name, one after another.
func TestLogsOfTheLastPod(t *testing.T) {
	n := &Node{cfg: Config{LogDir: t.TempDir()}}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "ns", "worker-0"
	for i, text := range []string{"first", "second", "third"} {
		for attempt := range 2 {
			path, err := n.newLog(pod, "main", attempt)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.attempts("ns", "worker-0", "main"); len(got) != 2 {
			t.Errorf("Pod %d has the runs %v, want its own two", i, got)
		}
	}
	for dir, want := range map[string]string{"main": "third", "main.previous": "second"} {
		text, err := os.ReadFile(filepath.Join(n.cfg.LogDir, "ns", "worker-0", dir, "1.log"))
		if err != nil || string(text) != want {
			t.Errorf("%s has %q (%v), want %q", dir, text, err, want)
		}
	}
}

func TestGPUs(t *testing.T) {
	g := &gpus{free: []string{"0", "1", "2"}}
	with := func(name string, n string) *corev1.Container {
		return &corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpuResource: resource.MustParse(n)}}}
	}
	g.keep("old", "main", []string{"A=b", "CUDA_VISIBLE_DEVICES=1"})
	got, err := g.take("p", with("a", "2"))
	if err != nil || got != "0,2" {
		t.Errorf("got %q, %v; device 1 is in use by a run of an earlier node", got, err)
	}
	if again, _ := g.take("p", with("a", "2")); again != got {
		t.Errorf("the next run gets %q", again)
	}
	if _, err := g.take("q", with("a", "1")); err == nil {
		t.Error("a fourth device was given away")
	}
	if none, err := g.take("q", &corev1.Container{Name: "a"}); none != "" || err != nil {
		t.Errorf("who asks for none gets %q, %v", none, err)
	}
	g.release("p")
	if _, err := g.take("q", with("a", "2")); err != nil {
		t.Errorf("released devices are not free: %v", err)
	}
}

func TestOnHost(t *testing.T) {
	mounts := []container.Mount{{Source: "/v/a", Target: "/var/log"}, {Source: "/v/b", Target: "/var/log/katib"}, {Source: "/v/c", Target: "/var/logs"},
		{Source: "/etc", Target: "/image", Layers: []string{"/layer"}}}
	for path, want := range map[string]string{
		"/var/log/katib/metrics.log": "/v/b/metrics.log", "/var/log/x": "/v/a/x", "/var/logs/y": "/v/c/y", "/tmp/z": "/tmp/z", "/var/log/../x": "/var/x",
		"/image/shadow": "/dev/null/etc/shadow", // not the machine's
	} {
		if got, _ := onHost(path, mounts); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}

func TestHostname(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name = "a-very-long-name-that-has-more-than-sixty-three-characters-in-it-all-told"
	if got := hostname(pod); got != "a-very-long-name-that-has-more-than-sixty-three-characters-in-i" {
		t.Errorf("got %q", got)
	}
	pod.Spec.Hostname = "worker-0"
	if got := hostname(pod); got != "worker-0" {
		t.Errorf("got %q", got)
	}
}
