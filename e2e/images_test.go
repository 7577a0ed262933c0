// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/testimage"
)

// TestImages runs Pods in images that a registry has, as root and as an ordinary
// user.
func TestImages(t *testing.T) {
	t.Parallel()
	t.Run("root", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		s := &server{t: t, home: t.TempDir(), pull: true}
		runsImages(t, s)
	})
	t.Run("user", func(t *testing.T) {
		t.Parallel()
		rootlesstest.Need(t)
		runsImages(t, &server{t: t, home: rootlesstest.Home(t), user: true, pull: true})
	})
}

// imagesOf serves the images of testdata/images, and has a home find them there.
func imagesOf(t *testing.T, home string) *testimage.Registry {
	t.Helper()
	shell := testimage.Layer(t, testimage.Shell(t)...)
	r := testimage.Serve(t, nil)
	r.Push(t, "library/shell:1", testimage.Image(t, v1.Config{
		Entrypoint: []string{"sh", "-c"}, Cmd: []string{`echo "$GREETING from $(pwd) as $(id -u), $(ls / | tr '\n' ' ')"`},
		Env: []string{"GREETING=hello", "PATH=/bin"}, WorkingDir: "/srv", User: "worker",
	}, shell, testimage.Layer(t, testimage.Dir("srv", 0o755))))
	r.Push(t, "acme/web:latest", testimage.Image(t, v1.Config{
		Entrypoint: []string{"busybox", "httpd", "-f", "-p", "80", "-h", "/www"}, Env: []string{"PATH=/bin"}, User: "1000",
	}, shell))
	r.Push(t, "library/busybox:1.37", testimage.Image(t, v1.Config{Cmd: []string{"sh"}, Env: []string{"PATH=/bin"}}, shell))
	text := "mirrors:\n"
	for _, host := range []string{"docker.io", "ghcr.io"} {
		text += fmt.Sprintf("- {prefix: %s, endpoints: [%q]}\n", host, r.Host)
	}
	if err := os.WriteFile(filepath.Join(home, "registries.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

func runsImages(t *testing.T, s *server) {
	registry := imagesOf(t, s.home)
	s.begin()
	s.gives(t, "kubectl", "apply", "-f", "e2e/testdata/images/pods.yaml")

	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s", "pod/hello")
	if got, want := s.gives(t, "kubectl", "logs", "hello"), "hello from /srv as 1000, bin dev etc home proc root srv sys tmp var "; strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("the image says %q, want %q", got, want)
	}
	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Failed", "--timeout=90s", "pod/fails")
	if got := s.gives(t, "kubectl", "get", "pod", "fails", "-o", "jsonpath={.status.containerStatuses[0].state.terminated['exitCode','reason','message']}"); got != "3 Error last words\n" {
		t.Errorf("the Pod that fails ended with %q", got)
	}
	status := s.gives(t, "kubectl", "get", "pod", "hello", "-o", "jsonpath={.status.containerStatuses[0].imageID} {.status.containerStatuses[0].containerID}")
	if !strings.HasPrefix(status, "docker.io/library/shell@sha256:") || !strings.Contains(status, " image://") {
		t.Errorf("the container's IDs are %s", status)
	}
	eventually(t, time.Minute, func() error { // events are written behind the Pod's status
		events := s.gives(t, "kubectl", "describe", "pod", "hello")
		if !strings.Contains(events, `Successfully pulled image "shell:1"`) && !strings.Contains(events, `image "shell:1" already present`) { // another Pod needs it, too
			return fmt.Errorf("describe does not say that the image was pulled:\n%s", events)
		}
		return nil
	})
	mountsImages(t, s, registry)
	pushesImages(t, s)
	keepsVolumes(t, s)
	servesFromImage(t, s)
	repeatsImages(t, s)
	refusesImages(t, s)
	managesImages(t, s)

	s.gives(t, "run", "--mount", "examples/images/program.yaml")
	if got := s.gives(t, "logs", "job/program-in-an-image"); !strings.Contains(got, "x=2.000\n") {
		t.Errorf("the program beside its manifest says %q", got)
	}
	s.gives(t, "run", "examples/images/experiment.yaml")
	observed := 0
	for _, trial := range s.trialsOf("in-an-image") {
		if strings.Contains(fmt.Sprint(trial.Object["status"]), "name:loss") {
			observed++
		}
	}
	if observed != 12 {
		t.Errorf("%d trials in images have a loss, want 12", observed)
	}
	s.gives(t, "kubectl", "delete", "-f", "e2e/testdata/images/pods.yaml", "--grace-period=1", "--wait=false", "--ignore-not-found")
	eventually(t, time.Minute, func() error {
		if left := s.gives(t, "kubectl", "get", "pods", "-o", "name"); strings.Contains(left, "web") || strings.Contains(left, "hello") {
			return fmt.Errorf("Pods are left: %s", left)
		}
		return nil
	})
}

// pushesImages pushes to the home's own registry, by diwan and by another program, and has a Pod run what is there.
func pushesImages(t *testing.T, s *server) {
	pushed := strings.TrimSpace(s.gives(t, "images", "push", "shell:1", "mine/shell"))
	host, repository, _ := strings.Cut(pushed, "/")
	if !strings.HasPrefix(host, "localhost:") || repository != "mine/shell:latest" {
		t.Fatalf("push prints %q", pushed)
	}
	s.gives(t, "kubectl", "run", "pushed", "--image="+pushed, "--restart=Never", `--overrides={"spec":{"runtimeClassName":"image"}}`, "--", "echo from the registry")
	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s", "pod/pushed")
	if got := s.gives(t, "kubectl", "logs", "pushed"); got != "from the registry\n" {
		t.Errorf("the pushed image says %q", got)
	}

	image := testimage.Image(t, v1.Config{}, testimage.Layer(t, testimage.Text("a", "b")))
	tag, err := name.NewTag(host + "/mine/other:v1")
	if err != nil {
		t.Fatal(err)
	}
	var refused *transport.Error
	if err := remote.Write(tag, image); !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("a push without the token ends with %v", err)
	}
	token := remote.WithAuth(&authn.Basic{Username: "anyone", Password: strings.TrimSpace(read(t, filepath.Join(s.home, "registry-token")))})
	if err := remote.Write(tag, image, token); err != nil {
		t.Error(err)
	}
	if got := s.gives(t, "registry"); !strings.Contains(got, host) || !strings.Contains(got, "mine/other") || !strings.Contains(got, "mine/shell") {
		t.Errorf("the registry is said to be:\n%s", got)
	}
	if got := s.gives(t, "registry", "remove", "mine/other"); got != "mine/other:v1\n" {
		t.Errorf("remove says %q", got)
	}
	if _, err := remote.Head(tag, token); !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound {
		t.Errorf("what was removed is answered with %v", err)
	}
	s.gives(t, "kubectl", "delete", "pod", "pushed", "--grace-period=1")
}

// keepsVolumes has the Pods of a StatefulSet find their own volumes again.
func keepsVolumes(t *testing.T, s *server) {
	s.gives(t, "kubectl", "rollout", "status", "statefulset/counter", "--timeout=90s")
	uid := s.gives(t, "kubectl", "get", "pod", "counter-1", "-o", "jsonpath={.metadata.uid}")
	s.gives(t, "kubectl", "delete", "pod", "counter-1")
	eventually(t, time.Minute, func() error {
		if now, _, _ := s.diwan("kubectl", "get", "pod", "counter-1", "-o", "jsonpath={.metadata.uid}{.status.phase}"); strings.Contains(now, uid) || !strings.Contains(now, "Running") {
			return fmt.Errorf("the Pod is not replaced: %s", now)
		}
		return nil
	})
	for pod, want := range map[string]string{"counter-0": "counter-0 begins for the 1. time\n", "counter-1": "counter-1 begins for the 2. time\n"} {
		eventually(t, time.Minute, func() error {
			if got := s.gives(t, "kubectl", "logs", pod); got != want {
				return fmt.Errorf("Pod %s says %q, want %q", pod, got, want)
			}
			return nil
		})
	}
	s.gives(t, "kubectl", "delete", "statefulset/counter")
}

// repeatsImages wants a Job that a CronJob made to have run.
func repeatsImages(t *testing.T, s *server) {
	eventually(t, 2*time.Minute, func() error {
		jobs := s.gives(t, "kubectl", "get", "jobs", "-o", `jsonpath={range .items[?(@.status.succeeded==1)]}{.metadata.ownerReferences[0].kind} {.metadata.name}{"\n"}{end}`)
		job, found := strings.CutPrefix(strings.SplitN(jobs, "\n", 2)[0], "CronJob ")
		if !found {
			return fmt.Errorf("no Job of the CronJob has succeeded: %q", jobs)
		}
		if got := s.gives(t, "kubectl", "logs", "job/"+job); got != "on time\n" {
			t.Errorf("the CronJob's Pod says %q", got)
		}
		return nil
	})
	s.gives(t, "kubectl", "delete", "cronjob/each-minute")
}

// servesFromImage has a server in an image answer by its Service, outlive a kill of
// Diwan, and be entered.
func servesFromImage(t *testing.T, s *server) {
	s.gives(t, "kubectl", "wait", "--for=condition=Available", "--timeout=90s", "deployment/web")
	pod := strings.TrimSpace(s.gives(t, "kubectl", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}"))
	ask := func() string {
		return s.gives(t, "kubectl", "exec", pod, "--", "wget", "-q", "-O", "-", "http://web:8000/")
	}
	if got := ask(); got != "served from a ConfigMap" {
		t.Errorf("the Service answers %q", got)
	}
	if got := s.gives(t, "kubectl", "exec", pod, "--", "sh", "-c", "id -u; touch /etc/x 2>&1 || touch /tmp/x && echo only /tmp is writable"); !strings.HasPrefix(got, "1000\n") || !strings.Contains(got, "only /tmp") {
		t.Errorf("inside, it says %q", got)
	}
	uid := s.gives(t, "kubectl", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	s.kill()
	s.start()
	s.gives(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=60s", "pod/"+pod)
	if got := ask(); got != "served from a ConfigMap" {
		t.Errorf("after a kill, the Service answers %q", got)
	}
	if got := s.gives(t, "kubectl", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"); got != uid+" 0" {
		t.Errorf("after a kill, the container is %s, it was %s", got, uid)
	}
}

// managesImages uses the commands for pulled images while the cluster runs.
func managesImages(t *testing.T, s *server) {
	if list := s.gives(t, "images", "list"); !strings.Contains(list, "docker.io/library/shell:1") || !strings.Contains(list, "ghcr.io/acme/web:latest") {
		t.Errorf("the list lacks pulled images:\n%s", list)
	}
	if _, said, code := s.diwan("images", "remove", "ghcr.io/acme/web"); code != 1 || !strings.Contains(said, "runs in it") {
		t.Errorf("an image in use is removed: exit code %d, %s", code, said)
	}
	archive := filepath.Join(t.TempDir(), "shell.tar")
	if s.user {
		archive = filepath.Join(s.home, "shell.tar")
	}
	s.gives(t, "images", "save", "shell:1", "-f", archive)
	s.gives(t, "kubectl", "delete", "pod", "hello", "fails", "privileged", "--grace-period=0", "--force")
	eventually(t, time.Minute, func() error {
		if _, said, code := s.diwan("images", "remove", "shell:1"); code != 0 {
			return fmt.Errorf("shell:1 is not removed: %s", said)
		}
		return nil
	})
	if _, said, code := s.diwan("images", "inspect", "shell:1"); code != 1 || !strings.Contains(said, "does not have this image") {
		t.Errorf("a removed image is still there: exit code %d, %s", code, said)
	}
	if names := s.gives(t, "images", "load", archive); !strings.Contains(names, "docker.io/library/shell:1") {
		t.Errorf("the archive has %s", names)
	}
	if config := s.gives(t, "images", "inspect", "shell:1"); !strings.Contains(config, "GREETING=hello") {
		t.Errorf("the loaded image is %s", config)
	}
	s.gives(t, "images", "prune", "--older-than", "0s")
	if list := s.gives(t, "images", "list"); strings.Contains(list, "docker.io/library/shell:1") || !strings.Contains(list, "ghcr.io/acme/web:latest") {
		t.Errorf("prune leaves what nothing needs, or not what runs:\n%s", list)
	}
}

// refusesImages wants what cannot run to say why.
func refusesImages(t *testing.T, s *server) {
	for pod, want := range map[string]string{
		"missing":    "ImagePull",
		"never":      "ErrImageNeverPull",
		"privileged": "CreateContainerConfigError",
	} {
		eventually(t, time.Minute, func() error {
			reason := s.gives(t, "kubectl", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}: {.status.containerStatuses[0].state.waiting.message}")
			if !strings.Contains(reason, want) {
				return fmt.Errorf("Pod %s waits for %s, want %s", pod, reason, want)
			}
			return nil
		})
	}
}
