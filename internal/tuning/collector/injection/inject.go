// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/entry"
	"diwan.dev/diwan/internal/tuning/collector/sidecar"
)

// Entrypoint is the default command of an image.
type Entrypoint struct{ Command, Args []string }

// Concerns reports whether a Pod of a trial gets a collector: the trial's
// metrics are collected, and the Pod has the labels and the container that they
// come from, and no collector yet.
func Concerns(pod *corev1.Pod, trial *v1beta1.Trial) bool {
	spec := collector.SpecOf(trial)
	switch spec.Kind {
	case collector.None, collector.Push, collector.Custom:
		return false
	}
	for key, value := range spec.PodLabels {
		if pod.Labels[key] != value {
			return false
		}
	}
	isCollector := func(c corev1.Container) bool { return c.Name == Container }
	return primary(pod, spec.Container) != nil &&
		!slices.ContainsFunc(pod.Spec.InitContainers, isCollector) && !slices.ContainsFunc(pod.Spec.Containers, isCollector)
}

// LacksCommand returns the primary container if the manifest has no command for
// it, else nil. must reports whether its metrics cannot be collected without: its
// output. Other metrics can, but then it does not wait at its end until they are
// stored.
func LacksCommand(pod *corev1.Pod, trial *v1beta1.Trial) (c *corev1.Container, must bool) {
	spec := collector.SpecOf(trial)
	if c := primary(pod, spec.Container); c != nil && len(c.Command) == 0 {
		return c, spec.Kind == collector.StdOut
	}
	return nil, false
}

func primary(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}

// Inject adds a collector to a Pod of a trial, for which Concerns is true.
// image is the entrypoint of the primary container's image, if LacksCommand
// requires it.
func Inject(pod *corev1.Pod, trial *v1beta1.Trial, c Config, image *Entrypoint) error {
	spec := collector.SpecOf(trial)
	container := primary(pod, spec.Container)
	if container == nil {
		return fmt.Errorf("cannot add a collector: the Pod has no container %q", spec.Container)
	}
	if image != nil && len(container.Command) == 0 {
		container.Command = literal(image.Command)
		if len(container.Args) == 0 {
			container.Args = literal(image.Args)
		}
	}
	config := sidecar.Config{Spec: *spec, Store: c.Store, Token: tokenDir + "/" + tokenFile}
	mounts := []corev1.VolumeMount{{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true}}
	add(&pod.Spec.Volumes, token())
	if len(container.Command) > 0 || image != nil && len(container.Args) > 0 {
		config.Dir = sharedDir
		shared := corev1.VolumeMount{Name: sharedVolume, MountPath: string(sharedDir)}
		add(&pod.Spec.Volumes, corev1.Volume{Name: sharedVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		container.VolumeMounts = append(container.VolumeMounts, shared)
		mounts = append(mounts, shared)
		container.Command = append(entry.Command(sharedDir, c.Patience), container.Command...)
		promptly(container)
	}
	if dir := directory(spec); dir != "" {
		mounts = append(mounts, share(pod, container, dir))
	}
	program, err := c.container(pod, config, mounts)
	if err != nil {
		return err
	}
	// Last: a service mesh's proxy, which is first, starts before it and ends
	// after it.
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, program)
	return nil
}

// literal keeps Kubernetes from expanding variables in an image's command.
func literal(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, strings.ReplaceAll(w, "$(", "$$("))
	}
	return out
}

// promptly has Python print each line when it is complete, as on a terminal, so
// that metrics are seen while the program runs.
func promptly(c *corev1.Container) {
	const name = "PYTHONUNBUFFERED"
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "1"})
	}
}

// container is the collector.
func (c Config) container(pod *corev1.Pod, config sidecar.Config, mounts []corev1.VolumeMount) (corev1.Container, error) {
	text, err := config.Encode()
	if err != nil {
		return corev1.Container{}, err
	}
	program := corev1.Container{
		Name:            Container,
		Image:           c.Image,
		ImagePullPolicy: c.PullPolicy,
		Command:         []string{sidecar.Name},
		Args:            literal([]string{text}),
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			field(sidecar.EnvPodUID, "metadata.uid"),
			field(sidecar.EnvPodIP, "status.podIP"),
		},
		Resources:                *c.Resources.DeepCopy(),
		VolumeMounts:             mounts,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          restricted(pod),
	}
	if config.Dir != "" {
		install := []string{entry.Name, "install", string(config.Dir)}
		program.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: install}}}
	}
	return program, nil
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
