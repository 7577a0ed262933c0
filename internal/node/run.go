// SPDX-License-Identifier: Apache-2.0

package node

import (
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

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/containerlog"
	"diwan.dev/diwan/internal/node/image"
	"diwan.dev/diwan/internal/node/rootless"
)

// AnnotationWorkingDirectory on a Pod is the directory of the host in which
// containers without a workingDir start.
const AnnotationWorkingDirectory = "diwan.dev/working-directory"

// waitError says that a container cannot start now, and why.
type waitError struct {
	reason string
	err    error
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
	switch {
	case errors.As(err, &start):
		w.change(func() { w.failedStart(e, start) })
		w.warn("Failed", "Error: "+start.Error())
	default:
		reason := "RunContainerError"
		if errors.As(err, &wait) {
			reason = wait.reason
		}
		w.change(func() {
			e.starting = false
			e.waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
			e.retry = clock().Add(retryDelay(e.retries))
			e.retries++
		})
		w.warn("Failed", "Error: "+err.Error())
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
	// An option is for an entrypoint, which the image's entry lacks then.
	program := len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-")
	env, err := w.node.cfg.Images.Resolve(c.Image, len(c.Command) > 0, program)
	if err != nil {
		return nil, &waitError{"ErrImagePull", err}
	}
	if err := env.Prepare(ctx, func(line string) { w.node.cfg.Log.V(1).Info("preparing an image", "image", c.Image, "step", line) }); err != nil {
		return nil, &waitError{"ErrImagePull", err}
	}
	spec, err := w.describe(ctx, pod, c, e, env)
	if err != nil {
		return nil, err
	}
	log, err := containerlog.Create(spec.Log)
	if err != nil {
		return nil, err
	}
	f := &follower{worker: w, pod: pod, spec: c, entry: e, id: spec.ID, log: log, mounts: spec.Mounts}
	if err := f.observe(ctx); err != nil {
		log.Close()
		return nil, err
	}
	run, err := w.node.spawn(ctx, w.runtime, spec, log.File())
	if err != nil {
		f.observer.Close()
		log.Close()
		return nil, err
	}
	f.begin(run)
	w.change(func() {
		w.nextRun(e)
		e.attempts = spec.ID.Attempt + 1
		e.id, e.imageID = "process://"+spec.ID.String(), env.ID
	})
	for _, warning := range run.Warnings() {
		w.warn("NotGiven", warning)
	}
	if !w.runtime.Mounts() && needsMounts(spec.Mounts) {
		w.warn("NotGiven", withoutMounts(w.node.cfg.Network.Shared()))
	}
	return f, nil
}

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

// describe says what to run for a container.
func (w *worker) describe(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry, img *image.Environment) (container.Spec, error) {
	n := w.node
	w.mu.Lock()
	sandbox, attempt := w.sandbox, e.attempts
	next := e.view
	w.mu.Unlock()
	spec := container.Spec{
		ID:    container.ID{Pod: string(pod.UID), Name: c.Name, Attempt: attempt},
		Netns: sandbox.NetnsPath, Hold: sandbox.Hold, Limits: limitsOf(c), Restarts: next.restarts,
	}
	var lacks string
	if spec.User, lacks = userOf(pod, c, ownRights(w.runtime.Mounts()), ownUser()); lacks != "" {
		w.warn("NotGiven", lacks)
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
		return spec, &waitError{"CreateContainerConfigError", err}
	}
	for _, warning := range env.warnings {
		w.warn("InvalidEnvironmentVariableNames", warning)
	}
	devices, err := n.gpus.take(string(pod.UID), c)
	if err != nil {
		return spec, &waitError{"CreateContainerError", err}
	}
	if devices != "" {
		env.services["CUDA_VISIBLE_DEVICES"], env.services["NVIDIA_VISIBLE_DEVICES"] = devices, devices
	}
	for _, words := range [][]string{c.Command, c.Args} {
		for _, word := range words {
			spec.Args = append(spec.Args, env.expand(word))
		}
	}
	if len(c.Command) == 0 {
		spec.Args = append(append([]string(nil), img.Command...), spec.Args...)
	}
	if spec.Mounts, err = w.mounts(pod, c, env, img, attempt); err != nil {
		return spec, &waitError{"CreateContainerConfigError", err}
	}
	if !rootless.Root() {
		env.services["DIWAN_VOLUMES"] = volumeList(c, spec.Mounts)
	}
	if img, err = w.giveSSH(pod, c, &spec, env, img, sandbox); err != nil {
		return spec, err
	}
	spec.Env = env.list(n.passed, img)
	if !pod.Spec.HostNetwork {
		spec.Hostname = hostname(pod)
	}
	if spec.Dir, err = w.workingDir(pod, c, img, spec.User); err != nil {
		return spec, err
	}
	spec.Log, err = n.newLog(pod, c.Name, attempt)
	return spec, err
}

// mounts are the volumes, the image's files, the files of names and the file for
// the container's last words.
func (w *worker) mounts(pod *corev1.Pod, c *corev1.Container, env *environment, img *image.Environment, attempt int) ([]container.Mount, error) {
	var mounts []container.Mount
	for target, source := range img.Mounts {
		mounts = append(mounts, container.Mount{Source: source, Target: target})
	}
	for name, target := range map[string]string{"hosts": "/etc/hosts", "resolv.conf": "/etc/resolv.conf"} {
		path := w.node.podPath(pod, name)
		if _, err := os.Stat(path); err == nil {
			mounts = append(mounts, container.Mount{Source: path, Target: target, Optional: true})
		}
	}
	if w.runtime.Mounts() && c.TerminationMessagePath != "" {
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
	}
	return append(mounts, volumes...), err
}

// tokenPath is where nearly every Pod mounts its service account's token, though
// few programs look there.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// needsMounts tells whether a container misses something where nothing can be
// mounted.
func needsMounts(mounts []container.Mount) bool {
	return slices.ContainsFunc(mounts, func(m container.Mount) bool { return !m.Optional })
}

// workingDir is the container's, the image's, the one that `diwan run` names,
// or a scratch directory of the Pod; for another user the root.
func (w *worker) workingDir(pod *corev1.Pod, c *corev1.Container, img *image.Environment, user *container.User) (string, error) {
	for _, dir := range []string{c.WorkingDir, img.WorkingDir, pod.Annotations[AnnotationWorkingDirectory]} {
		if dir != "" {
			return filepath.Join("/", dir), nil
		}
	}
	if user != nil && rootless.Root() {
		return "/", nil // another user cannot reach the node's state
	}
	scratch := w.node.podPath(pod, "work")
	return scratch, os.MkdirAll(scratch, 0o777)
}

// withoutMounts says how volumes are found where nothing is mounted, and what would
// change that, if it is known.
func withoutMounts(why error) string {
	text := "this machine does not let diwan mount volumes and files of images: containers find the volumes in $DIWAN_VOLUMES, as NAME=PATH separated by colons"
	if why != nil {
		text += fmt.Sprintf("; to have them mounted: %v", why)
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

func limitsOf(c *corev1.Container) container.Limits {
	return container.Limits{
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
		ExitCode: exit.Code, Reason: "Completed", ContainerID: "process://" + f.id.String(),
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
		n.cfg.Log.Error(err, "cannot mark a container; it may count as ended", "container", name)
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
