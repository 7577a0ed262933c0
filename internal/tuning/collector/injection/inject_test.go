// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/sidecar"
)

func trialOf(t *testing.T, spec string) *v1beta1.Trial {
	t.Helper()
	trial := &v1beta1.Trial{}
	trial.Namespace, trial.Name = "ns", "trial"
	trial.Spec.PrimaryContainerName = "main"
	trial.Spec.Objective = &v1beta1.ObjectiveSpec{ObjectiveMetricName: "loss"}
	if err := yaml.Unmarshal([]byte(spec), &trial.Spec); err != nil {
		t.Fatal(err)
	}
	return trial
}

func podOf(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return pod
}

const (
	printing = `{containers: [{name: main, image: a, command: [train], args: [--lr, "1"]}]}`
	bare     = `{containers: [{name: main, image: a, args: [--lr, "1"]}]}`
	ofFile   = `{metricsCollector: {collector: {kind: File}, source: {fileSystemPath: {kind: File, path: /logs/run/metrics.log}}}}`
)

func TestConcerns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason     string
		trial, pod string
		labels     map[string]string
		want       bool
	}{
		"StdOut":   {"the default", `{}`, printing, nil, true},
		"Push":     {"it reports by itself", `{metricsCollector: {collector: {kind: Push}}}`, printing, nil, false},
		"None":     {"nothing is wanted", `{metricsCollector: {collector: {kind: None}}}`, printing, nil, false},
		"Custom":   {"the user's own collects", `{metricsCollector: {collector: {kind: Custom}}}`, printing, nil, false},
		"Worker":   {"metrics come from another Pod", `{primaryPodLabels: {role: master}}`, printing, map[string]string{"role": "worker"}, false},
		"Master":   {"metrics come from this one", `{primaryPodLabels: {role: master}}`, printing, map[string]string{"role": "master"}, true},
		"Other":    {"it lacks the container", `{}`, `{containers: [{name: other}]}`, nil, false},
		"Injected": {"it has a collector", `{}`, `{containers: [{name: main}], initContainers: [{name: metrics-logger-and-collector}]}`, nil, false},
	} {
		pod := podOf(t, c.pod)
		pod.Labels = c.labels
		if got := Concerns(pod, trialOf(t, c.trial)); got != c.want {
			t.Errorf("%s: %s: got %t", name, c.reason, got)
		}
	}
}

func TestInject(t *testing.T) {
	t.Parallel()
	entry := []string{"/var/run/diwan/collector/entry", "run", "/var/run/diwan/collector", "5m0s"}
	for name, c := range map[string]struct {
		reason     string
		trial, pod string
		image      *Entrypoint
		needs, may bool
		command    []string
		args       []string
		mounts     []string // of the collector
	}{
		"StdOut": {
			reason: "the command is run by entry, the arguments stay", trial: `{}`, pod: printing,
			command: append(slices.Clone(entry), "train"), args: []string{"--lr", "1"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector"},
		},
		"Image": {
			reason: "without a command, the image's; its variables are not Kubernetes'", trial: `{}`, pod: bare,
			image: &Entrypoint{Command: []string{"python", "$(X)"}, Args: []string{"unused"}}, needs: true,
			command: append(slices.Clone(entry), "python", "$$(X)"), args: []string{"--lr", "1"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector"},
		},
		"ImageArgs": {
			reason: "also its arguments", trial: `{}`, pod: `{containers: [{name: main, image: a}]}`,
			image: &Entrypoint{Args: []string{"run"}}, needs: true, command: entry, args: []string{"run"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector"},
		},
		"FileOfImage": {
			reason: "a file can be read whatever the command", trial: ofFile, pod: bare, may: true, args: []string{"--lr", "1"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "metrics-volume:/logs/run:ro"},
		},
		"FileOfKnownImage": {
			reason: "its end waits where the command is known", trial: ofFile, pod: bare, image: &Entrypoint{Command: []string{"python"}}, may: true,
			command: append(slices.Clone(entry), "python"), args: []string{"--lr", "1"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector", "metrics-volume:/logs/run:ro"},
		},
		"FileOnVolume": {
			reason: "a file on a volume of the container's", trial: ofFile,
			pod:     `{containers: [{name: main, image: a, command: [x], volumeMounts: [{name: a, mountPath: /}, {name: b, mountPath: /logs/, subPath: s}, {name: c, mountPath: /lo}]}]}`,
			command: append(slices.Clone(entry), "x"),
			mounts:  []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector", "b:/logs/:ro/s"},
		},
		"Page": {
			reason: "the end waits until what the page had is stored", trial: `{metricsCollector: {collector: {kind: PrometheusMetric}}}`, pod: printing,
			command: append(slices.Clone(entry), "train"), args: []string{"--lr", "1"},
			mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector", "diwan-collector:/var/run/diwan/collector"},
		},
		"PageOfImage": {
			reason: "a page needs nothing", trial: `{metricsCollector: {collector: {kind: PrometheusMetric}}}`, pod: bare, may: true,
			args: []string{"--lr", "1"}, mounts: []string{"diwan-collector-token:/var/run/secrets/diwan.dev/collector"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, trial := podOf(t, c.pod), trialOf(t, c.trial)
			if lacks, must := LacksCommand(pod, trial); (lacks != nil) != (c.needs || c.may) || must != c.needs {
				t.Errorf("%s: lacks its command: %v, must be known: %t", c.reason, lacks, must)
			}
			if err := Inject(pod, trial, DefaultConfig("img", "db:1"), c.image); err != nil {
				t.Fatal(err)
			}
			main, own := pod.Spec.Containers[0], pod.Spec.InitContainers[0]
			if diff := cmp.Diff([][]string{c.command, c.args}, [][]string{main.Command, main.Args}); diff != "" {
				t.Errorf("%s: command and arguments: -want +got\n%s", c.reason, diff)
			}
			var mounts []string
			for _, m := range own.VolumeMounts {
				text := m.Name + ":" + m.MountPath
				if m.ReadOnly && m.Name != tokenVolume {
					text += ":ro"
				}
				if m.SubPath != "" {
					text += "/" + m.SubPath
				}
				mounts = append(mounts, text)
				if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) && len(m.Name) > 1 {
					t.Errorf("%s: there is no volume %s", c.reason, m.Name)
				}
			}
			if diff := cmp.Diff(c.mounts, mounts); diff != "" {
				t.Errorf("%s: the collector's mounts: -want +got\n%s", c.reason, diff)
			}
			config, err := sidecar.Parse(strings.ReplaceAll(own.Args[0], "$$(", "$("))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*collector.SpecOf(trial), config.Spec); diff != "" {
				t.Errorf("%s: what is collected: -want +got\n%s", c.reason, diff)
			}
			if Concerns(pod, trial) {
				t.Errorf("%s: it would get another", c.reason)
			}
		})
	}
}

// TestRestricted wants a collector that namespaces of the Pod security standard
// "restricted" admit, and that does not take a class of service from a Pod.
func TestRestricted(t *testing.T) {
	t.Parallel()
	pod := podOf(t, printing)
	pod.Spec.InitContainers = []corev1.Container{{Name: "proxy"}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
	if err := Inject(pod, trialOf(t, `{}`), DefaultConfig("img", "db:1"), nil); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.InitContainers[1]
	s := c.SecurityContext
	if !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || s.Capabilities.Drop[0] != "ALL" || *s.RunAsUser == 0 {
		t.Errorf("the security context is %+v", s)
	}
	if !cmp.Equal(c.Resources.Limits, c.Resources.Requests) {
		t.Errorf("the resources are %v", c.Resources)
	}
	if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways || c.Name != Container {
		t.Errorf("it is no sidecar: %+v", c)
	}
}
