// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/testing/testimage"
)

// mountsImages has Pods mount an image's files, which stays for as long as one does.
func mountsImages(t *testing.T, s *server, r *testimage.Registry) {
	r.Push(t, "acme/model:v1", testimage.Image(t, v1.Config{},
		testimage.Layer(t, testimage.Dir("weights", 0o755), testimage.Text("weights/a", "weights\n"), testimage.Text("version", "old\n")),
		testimage.Layer(t, testimage.Text("version", "v1\n"))))
	const manifest = "e2e/testdata/images/volumes.yaml"
	s.gives(t, "kubectl", "apply", "-f", manifest)
	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s", "pod/mounts-in-image")
	if got := s.gives(t, "kubectl", "logs", "mounts-in-image"); got != "weights\nv1\nweights\nread-only\n" {
		t.Errorf("in an image, the volume has %q", got)
	}
	s.gives(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=90s", "pod/mounts-as-process")
	eventually(t, time.Minute, func() error {
		if got := s.gives(t, "kubectl", "logs", "mounts-as-process"); got != "weights\nv1\nup\n" {
			return fmt.Errorf("as a process, the volume has %q", got)
		}
		return nil
	})
	eventually(t, time.Minute, func() error {
		if events := s.gives(t, "kubectl", "describe", "pod", "mounts-nothing"); !strings.Contains(events, `MountVolume.SetUp failed for volume "model"`) || !strings.Contains(events, "ghcr.io/acme/no-model:v1") {
			return fmt.Errorf("describe does not say that the volume's image is missing:\n%s", events)
		}
		return nil
	})
	if _, said, code := s.diwan("images", "remove", "ghcr.io/acme/model:v1"); code != 1 || !strings.Contains(said, "runs in it") {
		t.Errorf("an image that is mounted is removed: exit code %d, %s", code, said)
	}
	debugsImage(t, s)
	eventually(t, time.Minute, func() error {
		ends := s.gives(t, "kubectl", "get", "pod", "shares-processes", "-o", "jsonpath={.status.containerStatuses[*].state.terminated.exitCode}")
		if ends != "143 0" {
			return fmt.Errorf("containers that see each other's processes end with %q", ends)
		}
		return nil
	})
	s.gives(t, "kubectl", "delete", "-f", manifest, "--grace-period=0", "--force")
	eventually(t, time.Minute, func() error {
		if _, said, code := s.diwan("images", "remove", "ghcr.io/acme/model:v1"); code != 0 {
			return fmt.Errorf("the volume's image is not removed: %s", said)
		}
		return nil
	})
}

// debugsImage looks from another image at the processes of a container, which may have no tools.
func debugsImage(t *testing.T, s *server) {
	s.gives(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=90s", "pod/debugged-in-image")
	s.gives(t, "kubectl", "debug", "debugged-in-image", "--image=busybox:1.37", "--target=main", "-c", "debugger", "--", "sh", "-c",
		"tr '\\0' ' ' </proc/1/cmdline; kill -0 1 && echo is PID 1")
	eventually(t, time.Minute, func() error {
		got, said, code := s.diwan("kubectl", "logs", "debugged-in-image", "-c", "debugger")
		if code != 0 || got != "sleep 1234 is PID 1\n" {
			return fmt.Errorf("the debugger says %q, %s", got, said)
		}
		return nil
	})
}
