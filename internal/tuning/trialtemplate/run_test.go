// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

const job = `
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
      - {name: side}
      - {name: main}
`

func trial(t *testing.T, run, collector string) *v1beta1.Trial {
	t.Helper()
	out := &v1beta1.Trial{}
	out.Name, out.Namespace = "tune-a1", "ns"
	out.Labels = map[string]string{v1beta1.LabelExperiment: "tune"}
	out.Spec.RunSpec = tree(t, run)
	out.Spec.PrimaryContainerName = "main"
	if err := yaml.UnmarshalStrict([]byte(collector), &out.Spec.MetricsCollector); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRunObjectStampsJobs(t *testing.T) {
	t.Parallel()
	const env = `env: [{name: KATIB_TRIAL_NAME, value: tune-a1}]`
	pod := func(labels, main, volumes string) string {
		return `{metadata: {labels: {` + labels + `katib.kubeflow.org/experiment: tune, katib.kubeflow.org/trial: tune-a1}}, ` +
			`spec: {containers: [{name: side}, {name: main, ` + main + `}]` + volumes + `}}`
	}
	const mounted = `, volumeMounts: [{name: metrics-volume, mountPath: /logs}]`
	const volume = `, volumes: [{name: metrics-volume, emptyDir: {}}]`
	cases := []struct {
		reason, run, collector string
		primary                map[string]string
		want                   string
	}{
		{"labels and the trial's name", job, `{collector: {kind: StdOut}}`, nil, pod("", env, "")},
		{"a file lies on a volume", job, `{collector: {kind: File}, source: {fileSystemPath: {path: /logs/m.log, kind: File}}}`, nil,
			pod("", env+mounted, volume)},
		{"event files lie on a volume", job, `{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /logs/, kind: Directory}}}`, nil,
			pod("", env+mounted, volume)},
		{"a custom collector's directory lies on a volume", job, `{collector: {kind: Custom}, source: {fileSystemPath: {path: /logs, kind: Directory}}}`, nil,
			pod("", env+mounted, volume)},
		{"only Pods that count have the volume", job, `{collector: {kind: File}, source: {fileSystemPath: {path: /logs/m.log, kind: File}}}`,
			map[string]string{"role": "master"}, pod("", env, "")},
		{"a directory that is mounted stays", strings.Replace(job, "{name: main}", "{name: main, volumeMounts: [{name: mine, mountPath: /logs/}]}", 1),
			`{collector: {kind: File}, source: {fileSystemPath: {path: /logs/m.log, kind: File}}}`, nil,
			pod("", `volumeMounts: [{name: mine, mountPath: /logs/}], `+env, "")},
		{"a name of the user's own is replaced", strings.Replace(job, "{name: main}", "{name: main, env: [{name: KATIB_TRIAL_NAME, value: x}]}", 1),
			`{collector: {kind: StdOut}}`, nil, pod("", env, "")},
		{"the user's labels stay", strings.Replace(job, "    spec:", "    metadata: {labels: {a: b}}\n    spec:", 1),
			`{collector: {kind: StdOut}}`, nil, pod("a: b, ", env, "")},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			trial := trial(t, c.run, c.collector)
			trial.Spec.PrimaryPodLabels = c.primary
			before := trial.DeepCopy()
			got, err := RunObject(trial)
			if err != nil {
				t.Fatal(err)
			}
			want := tree(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: tune-a1, namespace: ns}\nspec: {template: "+c.want+"}")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("RunObject (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, trial); diff != "" {
				t.Errorf("RunObject changed the trial:\n%s", diff)
			}
		})
	}
}

// TestRunObjectAddsCollector checks the Pod of a trial with a collector of the
// user's.
func TestRunObjectAddsCollector(t *testing.T) {
	t.Parallel()
	const custom = `{collector: {kind: Custom, customCollector: {name: mine, image: i%s}}, source: {fileSystemPath: {path: /logs/m.log, kind: File}}}`
	const env = `env: [{name: KATIB_TRIAL_NAME, value: tune-a1}]`
	const mount = `volumeMounts: [{name: metrics-volume, mountPath: /logs}]`
	const volumes = `volumes: [{name: metrics-volume, emptyDir: {}}]`
	cases := []struct {
		reason, collector, pod string // pod is the template's beside its containers
		collected, want        string // the collector's fields and the Pod's
	}{
		{"it shares the directory, knows the trial, and is a sidecar", "", "",
			`lifecycle: {preStop: {sleep: {seconds: 5}}}, ` + mount, `shareProcessNamespace: true, ` + volumes},
		{"a Pod may give it less time", "", "terminationGracePeriodSeconds: 2, ",
			`lifecycle: {preStop: {sleep: {seconds: 2}}}, ` + mount, `terminationGracePeriodSeconds: 2, shareProcessNamespace: true, ` + volumes},
		{"or none", "", "terminationGracePeriodSeconds: 0, ",
			`lifecycle: {}, ` + mount, `terminationGracePeriodSeconds: 0, shareProcessNamespace: true, ` + volumes},
		{"its own hook stays", ", lifecycle: {preStop: {exec: {command: [c]}}}", "",
			`lifecycle: {preStop: {exec: {command: [c]}}}, ` + mount, `shareProcessNamespace: true, ` + volumes},
		{"its own mount stays", ", volumeMounts: [{name: v, mountPath: /logs/}]", "",
			`lifecycle: {preStop: {sleep: {seconds: 5}}}, volumeMounts: [{name: v, mountPath: /logs/}]`, `shareProcessNamespace: true, ` + volumes},
		{"a Pod that sees the host's processes sees its own", "", "hostPID: true, ",
			`lifecycle: {preStop: {sleep: {seconds: 5}}}, ` + mount, `hostPID: true, ` + volumes},
		{"what the Pod says of processes stays", "", "shareProcessNamespace: false, ",
			`lifecycle: {preStop: {sleep: {seconds: 5}}}, ` + mount, `shareProcessNamespace: false, ` + volumes},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			run := "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {" + c.pod + "initContainers: [{name: first}], containers: [{name: main}]}}}}"
			trial := trial(t, run, fmt.Sprintf(custom, c.collector))
			trial.Labels = nil
			before := trial.DeepCopy()
			got, err := RunObject(trial)
			if err != nil {
				t.Fatal(err)
			}
			want := tree(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: tune-a1, namespace: ns}, spec: {template: {metadata: {labels: {katib.kubeflow.org/trial: tune-a1}}, spec: {`+
				c.want+`, containers: [{name: main, `+env+`, `+mount+`}], initContainers: [{name: first}, {name: mine, image: i, restartPolicy: Always, resources: {}, `+
				env+`, `+c.collected+`}]}}}}`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("RunObject (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, trial); diff != "" {
				t.Errorf("RunObject changed the trial:\n%s", diff)
			}
		})
	}
}

func TestRunObjectLeavesOtherKinds(t *testing.T) {
	t.Parallel()
	got, err := RunObject(trial(t, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {a: b}", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: tune-a1, namespace: ns}\nspec: {a: b}")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RunObject (-want +got):\n%s", diff)
	}
}

func TestRunObjectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]string{
		"apiVersion: batch/v1\nkind: Job":                                                         `there is no container "main"`,
		"apiVersion: batch/v1\nkind: Job\nspec: 5":                                                "spec is not an object",
		"apiVersion: batch/v1\nkind: Job\nspec: {template: {metadata: [a]}}":                      "metadata is not an object",
		"apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{name: x}, 5]}}}": "containers are: x",
	} {
		if _, err := RunObject(trial(t, run, "{}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("RunObject of %q says %v, want %q in it", run, err, want)
		}
	}
	empty := trial(t, job, "{}")
	empty.Spec.RunSpec = nil
	if _, err := RunObject(empty); err == nil {
		t.Error("RunObject of a trial without a run says nothing")
	}
}
