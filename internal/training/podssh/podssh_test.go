// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/training/sshkey"
)

// keys makes a directory of keys, as a Secret is mounted.
func keys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pair, err := sshkey.New()
	if err != nil {
		t.Fatal(err)
	}
	for file, key := range map[string]string{sshkey.PrivateFile: sshkey.Private, sshkey.AuthorizedFile: sshkey.Public} {
		if err := os.WriteFile(filepath.Join(dir, file), pair[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serve runs a server, and returns a client of it that knows it as "worker".
func serve(t *testing.T, dir string) Client {
	t.Helper()
	server, err := NewServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("# names\n127.0.0.1 other worker worker.job.ns.svc # and so on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := DefaultClient(dir)
	c.Hosts, c.Port, c.Patience = hosts, listener.Addr().(*net.TCPAddr).Port, 10*time.Second
	return c
}

func TestCommands(t *testing.T) {
	t.Parallel()
	c := serve(t, keys(t))
	cases := map[string]struct {
		reason, host string
		command      []string
		in           io.Reader
		out, errs    string
		code         int
	}{
		"Output":   {reason: "both streams come", host: "worker", command: []string{"echo out;", "echo err >&2"}, out: "out\n", errs: "err\n"},
		"Code":     {reason: "and the exit code", host: "me@worker.job.ns.svc", command: []string{"exit", "7"}, code: 7},
		"Signal":   {reason: "of a program that was killed as the shell has it", host: "worker", command: []string{"kill -9 $$"}, code: 137},
		"Input":    {reason: "input goes there, to its end", host: "worker", command: []string{"cat"}, in: strings.NewReader("a\nb\n"), out: "a\nb\n"},
		"Endless":  {reason: "a command need not read it", host: "worker", command: []string{"echo", "done"}, in: endless{}, out: "done\n"},
		"Shell":    {reason: "the shell there reads the words", host: "worker", command: []string{"A=1;", "echo", `"$A  $B"`}, out: "1  \n"},
		"NotFound": {reason: "a program that is not there", host: "worker", command: []string{"no-such-program 2>/dev/null"}, code: 127},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := tc.in
			if in == nil {
				in = strings.NewReader("")
			}
			var out, errs bytes.Buffer
			code, err := c.Run(t.Context(), tc.host, tc.command, in, &out, &errs)
			if err != nil || code != tc.code || out.String() != tc.out || errs.String() != tc.errs {
				t.Errorf("%s: code %d, out %q, err %q (%v)", tc.reason, code, out.String(), errs.String(), err)
			}
		})
	}
}

// TestLeftBehind holds that what a command leaves behind goes on, and does not keep
// the session, though it has its output open.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	c := serve(t, keys(t))
	var out bytes.Buffer
	code, err := c.Run(t.Context(), "worker", []string{"sleep 600 & echo $!"}, strings.NewReader(""), &out, io.Discard)
	pid, wrong := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil || wrong != nil || code != 0 {
		t.Fatalf("code %d, out %q (%v)", code, out.String(), err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("what was left behind has ended: %v", err)
	}
}

// TestClientGone holds that a command ends when its client is gone.
func TestClientGone(t *testing.T) {
	t.Parallel()
	c := serve(t, keys(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, "worker", []string{"echo $$; exec sleep 600"}, strings.NewReader(""), out, io.Discard)
		out.CloseWithError(err)
		ended <- err
	}()
	var pid int
	if _, err := fmt.Fscanln(said, &pid); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the client knows of no end")
	}
	for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the command runs on")
		}
	}
}

// endless is an input that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestStrangers holds that neither side speaks with one that has another key.
func TestStrangers(t *testing.T) {
	t.Parallel()
	c := serve(t, keys(t))
	c.Keys = keys(t)
	if _, err := c.Run(t.Context(), "worker", []string{"true"}, strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "host key mismatch") {
		t.Errorf("a client takes a host that is another: %v", err)
	}
	mixed := keys(t) // the host's key, but none that it lets in
	c = serve(t, mixed)
	if err := os.WriteFile(filepath.Join(mixed, sshkey.AuthorizedFile), []byte("ssh-rsa broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "worker", []string{"true"}, strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("a host lets in whom it does not know: %v", err)
	}
}

// TestServerComesLate holds that a client waits for a server that has no name yet.
func TestServerComesLate(t *testing.T) {
	t.Parallel()
	c := serve(t, keys(t))
	late := filepath.Join(t.TempDir(), "hosts")
	hosts, retried := c.Hosts, make(chan struct{})
	c.Hosts, c.Retry = late, time.Millisecond
	go func() {
		defer close(retried)
		text, err := os.ReadFile(hosts)
		if err == nil {
			err = os.WriteFile(late, bytes.ReplaceAll(text, []byte("worker"), []byte("late.invalid")), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	code, err := c.Run(t.Context(), "late.invalid", []string{"exit 3"}, strings.NewReader(""), io.Discard, io.Discard)
	<-retried
	if err != nil || code != 3 {
		t.Errorf("code %d, %v", code, err)
	}
	c.Patience = 10 * time.Millisecond
	if _, err := c.Run(t.Context(), "never.invalid", []string{"true"}, strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "cannot connect to never.invalid") {
		t.Errorf("a host that never comes gives %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "sshd_config")
	if err := os.WriteFile(settings, []byte("PidFile /x\nport 2200\nPort 2201\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ssh := map[string]options{
		"-o ConnectionAttempts=10 host orted -mca ess env -p x": {host: "host", command: []string{"orted", "-mca", "ess", "env", "-p", "x"}},
		"-x -p 2200 host true":                {port: 2200, host: "host", command: []string{"true"}},
		"-xTp2200 -l me host -- true":         {port: 2200, host: "host", command: []string{"true"}},
		"-o A=no host -p 2200 -i key bash -c": {port: 2200, host: "host", command: []string{"bash", "-c"}},
		"-B lo -P tag -p 2200 host a":         {port: 2200, host: "host", command: []string{"a"}},
		"-oPort=2200 -q -- host a":            {port: 2200, host: "host", command: []string{"a"}},
		"-o StrictHostKeyChecking=no host a":  {host: "host", command: []string{"a"}},
	}
	for line, want := range ssh {
		got, err := parse(strings.Fields(line), sshValues)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{})); diff != "" || err != nil {
			t.Errorf("ssh %s: %v (-want +got)\n%s", line, err, diff)
		}
	}
	for line, want := range map[string]int{"-De": 2222, "-De -f /no/such/file": 2222, "-De -f " + settings: 2200, "-D -p 22 -f " + settings: 22, "-De -oPort=80": 80, "-D -u 0 -b 1024 -p 22": 22} {
		o, err := parse(strings.Fields(line), sshdValues)
		if got, wrong := o.listenPort(); err != nil || wrong != nil || got != want {
			t.Errorf("sshd %s listens on %d, want %d (%v, %v)", line, got, want, err, wrong)
		}
	}
	for _, line := range []string{"-p", "-p x", "-p 70000", "-p 0", "-oport=", "-xp"} {
		if _, err := parse(strings.Fields(line), sshValues); err == nil {
			t.Errorf("ssh %s: no error", line)
		}
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	volume := func(items ...corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{Items: items}}}
	}
	key := corev1.KeyToPath{Key: "ssh-privatekey", Path: "id_rsa"}
	mounts := []corev1.VolumeMount{{Name: "v", MountPath: "home/me/.ssh/"}}
	cases := map[string]struct {
		reason string
		volume corev1.Volume
		mounts []corev1.VolumeMount
		want   string
	}{
		"Keys":    {"a container with keys", volume(key), mounts, "/home/me/.ssh"},
		"Others":  {"a Secret of other things", volume(corev1.KeyToPath{Key: "ssh-privatekey", Path: "deploy_key"}), mounts, ""},
		"Whole":   {"a Secret whose files have other names", volume(), mounts, ""},
		"Unseen":  {"a container of that Pod that does not mount it", volume(key), nil, ""},
		"NoKeys":  {"no Secret", corev1.Volume{Name: "v"}, mounts, ""},
		"Missing": {"no volume of that name", volume(key), []corev1.VolumeMount{{Name: "w", MountPath: "/x"}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{tc.volume}}}
			if got := Wants(pod, &corev1.Container{VolumeMounts: tc.mounts}); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	got := Replace([]string{"/usr/sbin/sshd", "-De", "-f", "/etc/ssh/sshd_config"}, "/bin")
	if diff := cmp.Diff([]string{"/bin/sshd", "-De", "-f", "/etc/ssh/sshd_config"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-o ConnectionAttempts=10 -x host orted")
	f.Add("-De -f x -p 22")
	f.Add("- -- -")
	f.Fuzz(func(t *testing.T, line string) {
		for _, values := range []string{sshValues, sshdValues} {
			if o, err := parse(strings.Fields(line), values); err == nil && (o.port < 0 || o.port > 65535) {
				t.Errorf("%q: port %d", line, o.port)
			}
		}
	})
}
