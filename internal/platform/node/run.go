// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/containerlog"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/imagepull"
	"diwan.dev/diwan/internal/platform/node/rootless"
)

// AnnotationWorkingDirectory on a Pod is the directory of the host in which
// containers without a workingDir start.
const AnnotationWorkingDirectory = "diwan.dev/working-directory"

// waitError says that a container cannot start now, and why.
type waitError struct {
	reason string
	err    error
	after  time.Duration // when to try again; 0 is for the usual pauses
}

func (e *waitError) Error() string { return e.err.Error() }

// start starts the next run of a container.
func (w *worker) start(ctx context.Context, pod *corev1.Pod, name string, e *entry) {
	c := containerOf(pod, name)
	f, err := w.launch(ctx, pod, c, e)
	if err == nil {
		w.tasks.Go(func() { w.follow(ctx, f) })
		return
	}
	if ctx.Err() != nil {
		return
	}
	var start *container.StartError
	var wait *waitError
	var pull *imagepull.Error
	switch {
	case errors.As(err, &start):
		w.change(func() { w.failedStart(e, start) })
		w.warn("Failed", "Error: "+start.Error())
	default:
		reason, after := "RunContainerError", time.Duration(0)
		if errors.As(err, &wait) {
			reason, after = wait.reason, wait.after
		}
		w.change(func() {
			e.starting = false
			e.waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
			e.retry = clock().Add(cmp.Or(after, retryDelay(e.retries)))
			e.retries++
		})
		text := err.Error()
		if errors.As(err, &pull) {
			text = pull.Reason // an event of its own has said why
		}
		w.warn("Failed", "Error: "+text)
	}
}

// failedStart makes a run that could not start one that ended.
func (w *worker) failedStart(e *entry, cause *container.StartError) {
	now := stamp(clock())
	w.nextRun(e)
	e.starting = false
	e.view.ended = &corev1.ContainerStateTerminated{
		ExitCode: cause.Code, Reason: cause.Reason, Message: cause.Error(), StartedAt: *now, FinishedAt: *now, ContainerID: e.id,
	}
	e.attempts++
}

// nextRun counts a run that follows another.
func (w *worker) nextRun(e *entry) {
	if e.view.ended != nil {
		e.backoff = nextBackoff(&e.view)
		e.previous, e.view.ended = e.view.ended, nil
		e.restarts++
	}
	e.waiting, e.retries = nil, 0
}

// launch brings a run into being.
func (w *worker) launch(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry) (*follower, error) {
	s, err := w.setting(ctx, pod, c, e)
	if err != nil {
		return nil, err
	}
	spec, err := w.describe(ctx, pod, c, e, s)
	if err != nil {
		return nil, err
	}
	log, err := containerlog.Create(spec.Log)
	if err != nil {
		return nil, err
	}
	f := &follower{worker: w, pod: pod, spec: c, entry: e, id: spec.ID, log: log, mounts: spec.Mounts, place: s.place, inImage: spec.Root != nil}
	if err := f.observe(ctx); err != nil {
		log.Close()
		return nil, err
	}
	spec.Mounts = f.mounts // with those for what the observer reads
	run, err := w.node.spawn(ctx, s.runtime, spec, log.File())
	if err != nil {
		f.observer.Close()
		log.Close()
		return nil, err
	}
	f.begin(run)
	w.change(func() {
		w.nextRun(e)
		e.attempts = spec.ID.Attempt + 1
		e.id, e.imageID = containerID(spec), s.img.ID
	})
	for _, warning := range run.Warnings() {
		w.warn("Degraded", warning)
	}
	if !s.runtime.Mounts() && needsMounts(spec.Mounts) {
		w.warn("Degraded", withoutMounts(w.node.cfg.Network.Shared()))
	}
	return f, nil
}

// interactive reports whether a container is interactive. If its image is not
// mapped, its arguments are the command, or it runs a shell: that is usually
// intended, and the user sees at once what runs.
func interactive(c *corev1.Container) bool { return c.Stdin || c.TTY }

// spawn starts a run, and not too many at a time.
func (n *Node) spawn(ctx context.Context, r container.Runtime, spec container.Spec, output *os.File) (container.Run, error) {
	select {
	case n.starts <- struct{}{}:
		defer func() { <-n.starts }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r.Start(ctx, spec, output)
}

// describe returns the specification of a container's run.
func (w *worker) describe(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry, s *setting) (container.Spec, error) {
	n, img := w.node, s.img
	w.mu.Lock()
	sandbox, attempt := w.sandbox, e.attempts
	next := e.view
	w.mu.Unlock()
	spec := container.Spec{
		ID:    container.ID{Pod: string(pod.UID), Name: c.Name, Attempt: attempt},
		Netns: sandbox.NetnsPath, Hold: sandbox.Hold, Limits: n.limitsOf(c), Restarts: next.restarts,
		Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY,
	}
	if err := w.secure(pod, c, s, &spec); err != nil {
		return spec, err
	}
	if next.ended != nil {
		spec.Restarts, spec.Backoff = next.restarts+1, nextBackoff(&next)
	}
	shown := withAddresses(pod, sandbox, n.hostIP())
	env := &environment{objects: n.objects, pod: shown, allocatable: n.allocatable(), services: n.serviceEnv(pod), declared: map[string]string{}}
	if sandbox.NetnsPath == "" && !pod.Spec.HostNetwork {
		env.services["POD_IP"] = sandbox.Bind.String()
	}
	if err := env.declare(ctx, c); err != nil {
		return spec, &waitError{reason: "CreateContainerConfigError", err: err}
	}
	for _, warning := range env.warnings {
		w.warn("InvalidEnvironmentVariableNames", warning)
	}
	devices, err := n.gpus.take(string(pod.UID), c)
	if err != nil {
		return spec, &waitError{reason: "CreateContainerError", err: err}
	}
	if devices != "" && s.pulled != nil {
		return spec, &waitError{reason: "CreateContainerConfigError", err: fmt.Errorf("container %s asks for GPUs, which containers in images do not get on this machine: run it as a process with runtimeClassName: process", c.Name)}
	}
	if devices != "" {
		env.services["CUDA_VISIBLE_DEVICES"], env.services["NVIDIA_VISIBLE_DEVICES"] = devices, devices
	}
	spec.Args = argsOf(c, img, env.expand)
	if spec.Mounts, err = w.mounts(pod, c, env, s, attempt); err != nil {
		return spec, &waitError{reason: "CreateContainerConfigError", err: err}
	}
	if c.TTY {
		env.services["TERM"] = "xterm"
	}
	if !rootless.Root() && s.pulled == nil {
		env.services["DIWAN_VOLUMES"] = volumeList(c, spec.Mounts)
	}
	passed := n.passed
	if s.pulled != nil {
		passed = s.pulled.defaults(hostname(pod))
	} else if img, err = w.decorate(pod, c, &spec, env, s, sandbox); err != nil {
		return spec, err
	}
	spec.Env = env.list(passed, img)
	if !pod.Spec.HostNetwork {
		spec.Hostname = hostname(pod)
	}
	if spec.Dir, err = w.workingDir(pod, c, s, spec.User); err != nil {
		return spec, err
	}
	spec.Log, err = n.newLog(pod, c.Name, attempt)
	return spec, err
}

// mounts are the volumes, the image's files, the files of names and the file for
// the container's last words.
func (w *worker) mounts(pod *corev1.Pod, c *corev1.Container, env *environment, s *setting, attempt int) ([]container.Mount, error) {
	var mounts []container.Mount
	for target, source := range s.img.Mounts {
		mounts = append(mounts, container.Mount{Source: source, Target: target})
	}
	for name, target := range map[string]string{"hosts": "/etc/hosts", "resolv.conf": "/etc/resolv.conf"} {
		path := w.node.podPath(pod, name)
		if _, err := os.Stat(path); err != nil {
			if s.pulled == nil {
				continue // the machine's is there
			}
			if path, err = filepath.EvalSymlinks(target); err != nil {
				continue
			}
		}
		mounts = append(mounts, container.Mount{Source: path, Target: target, Optional: true})
	}
	if s.runtime.Mounts() && c.TerminationMessagePath != "" {
		path := w.node.messagePath(pod, c.Name, attempt)
		file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return nil, err
		}
		file.Chmod(0o666) // despite the umask
		file.Close()
		mounts = append(mounts, container.Mount{Source: path, Target: c.TerminationMessagePath, Optional: true})
	}
	volumes, err := w.node.volumes.Mounts(pod, c, env.expandStrict)
	for i := range volumes {
		volumes[i].Optional = volumes[i].Target == tokenPath
		if volumes[i].ImageID != "" && !s.runtime.Mounts() {
			return nil, fmt.Errorf("cannot mount the image at %s: %s", volumes[i].Target, withoutMounts(w.node.cfg.Network.Shared()))
		}
	}
	return append(mounts, volumes...), err
}

// tokenPath is where nearly every Pod mounts its service account's token, though
// few programs look there.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// needsMounts reports whether a container lacks something if nothing can be
// mounted.
func needsMounts(mounts []container.Mount) bool {
	return slices.ContainsFunc(mounts, func(m container.Mount) bool { return !m.Optional })
}

// workingDir is the container's, the image's, the one that `diwan run` names,
// or a scratch directory of the Pod; for another user the root.
func (w *worker) workingDir(pod *corev1.Pod, c *corev1.Container, s *setting, user *container.User) (string, error) {
	if s.pulled != nil {
		return filepath.Join("/", cmp.Or(c.WorkingDir, s.img.WorkingDir)), nil
	}
	if dir := namedDir(pod, c, s.img); dir != "" {
		return dir, nil
	}
	if user != nil && rootless.Root() {
		return "/", nil // another user cannot reach the node's state
	}
	scratch := w.node.podPath(pod, "work")
	return scratch, os.MkdirAll(scratch, 0o777)
}

// namedDir is the working directory that the container, the image or `diwan run` names; "" if none does.
func namedDir(pod *corev1.Pod, c *corev1.Container, img *image.Environment) string {
	for _, dir := range []string{c.WorkingDir, img.WorkingDir, pod.Annotations[AnnotationWorkingDirectory]} {
		if dir != "" {
			return filepath.Join("/", dir)
		}
	}
	return ""
}

// resolveImage resolves a container's image. An argument that is an option is
// for an entrypoint, which the image's entry then lacks.
func resolveImage(images image.Resolver, c *corev1.Container) (*image.Environment, error) {
	// An option is for an entrypoint, which the image's entry lacks then.
	program := len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-")
	return images.Resolve(c.Image, len(c.Command) > 0 || interactive(c), program)
}

// argsOf is the program of a container and its arguments.
func argsOf(c *corev1.Container, img *image.Environment, expand func(string) string) []string {
	var args []string
	if len(c.Command) == 0 {
		args = append(args, img.Command...)
	}
	if len(c.Command) == 0 && len(c.Args) == 0 {
		args = append(args, img.Args...)
	}
	for _, word := range slices.Concat(c.Command, c.Args) {
		args = append(args, expand(word))
	}
	if len(args) == 0 && interactive(c) {
		args = []string{"sh"}
	}
	return args
}

// withoutMounts says how to find volumes if nothing is mounted, and the remedy, if
// known.
func withoutMounts(why error) string {
	text := "this machine does not allow diwan to mount volumes and image files: containers find the volumes in $DIWAN_VOLUMES, as NAME=PATH separated by colons"
	if why != nil {
		text += fmt.Sprintf("; to mount them: %v", why)
	}
	return text
}

// volumeList is the value of DIWAN_VOLUMES: where a container's volumes lie on
// the host.
func volumeList(c *corev1.Container, mounts []container.Mount) string {
	var list []string
	for _, vm := range c.VolumeMounts {
		for _, m := range mounts {
			if m.Target == filepath.Join("/", vm.MountPath) {
				list = append(list, vm.Name+"="+m.Source)
			}
		}
	}
	return strings.Join(list, ":")
}

// hostname is kubelet's: spec.hostname, or the Pod's name, cut to 63 characters.
func hostname(pod *corev1.Pod) string {
	name := pod.Spec.Hostname
	if name == "" {
		name = pod.Name
	}
	if pod.Spec.HostnameOverride != nil {
		name = *pod.Spec.HostnameOverride
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

func (n *Node) limitsOf(c *corev1.Container) container.Limits {
	return container.Limits{
		PIDs:       n.cfg.PIDs,
		Memory:     c.Resources.Limits.Memory().Value(),
		CPU:        c.Resources.Limits.Cpu().MilliValue(),
		CPURequest: c.Resources.Requests.Cpu().MilliValue(),
	}
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, c := range containersOf(pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func typesUID(uid string) types.UID { return types.UID(uid) }

// messagePath is the file for the last words of a run.
func (n *Node) messagePath(pod *corev1.Pod, name string, attempt int) string {
	return n.podPath(pod, fmt.Sprintf("message.%s.%d", name, attempt))
}

// terminated describes the end of a run.
func (f *follower) terminated(exit container.Exit) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: exit.Code, Reason: "Completed", ContainerID: containerID(f.run.Spec()),
		StartedAt: *stamp(f.run.Started()), FinishedAt: metav1.NewTime(exit.At).Rfc3339Copy(),
	}
	switch {
	case exit.OOMKilled && exit.Code != 0:
		t.Reason, t.ExitCode = "OOMKilled", 128+int32(syscall.SIGKILL)
	case exit.Code != 0:
		t.Reason = "Error"
	}
	t.Message = f.lastWords(exit)
	return t
}

// lastWords is the content of the container's message file, or, where its policy
// says so and it failed, the end of its output: kubelet's 4096 bytes, or 80
// lines and 2048 bytes.
func (f *follower) lastWords(exit container.Exit) string {
	text := tail(f.worker.node.messagePath(f.pod, f.id.Name, f.id.Attempt), 4096)
	if text == "" && exit.Code != 0 && f.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		text = tail(f.log.File().Name(), 2048)
		if lines := strings.SplitAfter(text, "\n"); len(lines) > 80 {
			text = strings.Join(lines[len(lines)-80:], "")
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// tail reads the last bytes of a file, as far as it can.
func tail(path string, most int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		file.Seek(-most, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(file, most))
	return string(text)
}

// interrupt ends a run because the node stops; it runs again with the next.
func (n *Node) interrupt(run container.Run, grace time.Duration, name string) {
	if err := run.Interrupt(); err != nil {
		n.cfg.Log.Error(err, "cannot mark a container as interrupted; it may count as ended", "container", name)
	}
	run.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-run.Done():
		return
	case <-timer.C:
	}
	if err := run.Kill(); err != nil {
		n.cfg.Log.Error(err, "cannot kill a container", "container", name)
	}
	<-run.Done()
}
