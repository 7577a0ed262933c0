// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/config/runtimes"
)

// shipped is a runtime that every cluster has.
func shipped(t *testing.T, name string) *v1alpha1.TrainingRuntimeSpec {
	t.Helper()
	all, err := runtimes.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			return &r.Spec
		}
	}
	t.Fatalf("there is no runtime %s", name)
	return nil
}

// newJob reads a job's spec.
func newJob(t *testing.T, spec string) *v1alpha1.TrainJob {
	t.Helper()
	job := &v1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "u"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &job.Spec); err != nil {
		t.Fatal(err)
	}
	job.SetDefaults()
	return job
}

// environment lists the variables of the container node of each replicated job,
// and its number of Pods.
func environment(o *Objects) []string {
	var out []string
	for i := range o.JobSet.Spec.ReplicatedJobs {
		r := &o.JobSet.Spec.ReplicatedJobs[i]
		out = append(out, fmt.Sprintf("%s: %d", r.Name, pods(r)))
		c := container(r, v1alpha1.Node)
		if c == nil {
			continue
		}
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = "<" + e.ValueFrom.FieldRef.FieldPath + ">"
			}
			out = append(out, "  "+e.Name+"="+value)
		}
	}
	return out
}

const index = "<metadata.annotations['batch.kubernetes.io/job-completion-index']>"

func TestFrameworks(t *testing.T) {
	t.Parallel()
	cases := []struct{ reason, runtime, spec, want string }{
		{"Trainer's first example", "torch-distributed", "trainer: {numNodes: 3}", `
node: 3
  PET_NNODES=3
  PET_NPROC_PER_NODE=1
  PET_NODE_RANK=POD
  PET_MASTER_ADDR=j-node-0-0.j
  PET_MASTER_PORT=29500`},
		{"without spec.trainer, where Trainer forgets the variables", "torch-distributed", "", `
node: 1
  PET_NNODES=1
  PET_NPROC_PER_NODE=1
  PET_NODE_RANK=POD
  PET_MASTER_ADDR=j-node-0-0.j
  PET_MASTER_PORT=29500`},
		{"as many processes as processors", "torch-distributed", "trainer: {resourcesPerNode: {limits: {cpu: 4}}}", `
node: 1
  PET_NNODES=1
  PET_NPROC_PER_NODE=4
  PET_NODE_RANK=POD
  PET_MASTER_ADDR=j-node-0-0.j
  PET_MASTER_PORT=29500`},
		{"torchrun counts GPUs; the job's variables come after", "torch-distributed", "trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: 2}}, env: [{name: A, value: b}]}", `
node: 1
  PET_NNODES=1
  PET_NPROC_PER_NODE=auto
  PET_NODE_RANK=POD
  PET_MASTER_ADDR=j-node-0-0.j
  PET_MASTER_PORT=29500
  A=b`},
		{"JAX", "jax-distributed", "trainer: {numNodes: 2}", `
node: 2
  JAX_NUM_PROCESSES=2
  JAX_PROCESS_ID=POD
  JAX_COORDINATOR_ADDRESS=j-node-0-0.j:29500`},
		{"XGBoost, a worker a GPU", "xgboost-distributed", "trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", `
node: 2
  DMLC_TRACKER_URI=j-node-0-0.j
  DMLC_TRACKER_PORT=29500
  DMLC_TASK_ID=POD
  DMLC_NUM_WORKER=8`},
		{"TensorFlow's workers", "tensorflow-distributed", "trainer: {numNodes: 2}", `
node: 2
  TF_TASK_INDEX=POD
  TF_CONFIG={"cluster":{"worker":["j-node-0-0.j:29500","j-node-0-1.j:29500"]},"task":{"type":"worker","index":$(TF_TASK_INDEX)},"environment":"cloud"}`},
		{"TensorFlow's parameter servers: all tasks have the job's variables", "tensorflow-parameter-server", "trainer: {numNodes: 1, env: [{name: A, value: b}]}", `
ps: 1
  A=b
  TF_TASK_INDEX=POD
  TF_CONFIG={"cluster":{"chief":["j-chief-0-0.j:29500"],"ps":["j-ps-0-0.j:29500"],"worker":["j-node-0-0.j:29500"]},"task":{"type":"ps","index":$(TF_TASK_INDEX)},"environment":"cloud"}
node: 1
  A=b
  TF_TASK_INDEX=POD
  TF_CONFIG={"cluster":{"chief":["j-chief-0-0.j:29500"],"ps":["j-ps-0-0.j:29500"],"worker":["j-node-0-0.j:29500"]},"task":{"type":"worker","index":$(TF_TASK_INDEX)},"environment":"cloud"}
chief: 1
  A=b
  TF_TASK_INDEX=POD
  TF_CONFIG={"cluster":{"chief":["j-chief-0-0.j:29500"],"ps":["j-ps-0-0.j:29500"],"worker":["j-node-0-0.j:29500"]},"task":{"type":"chief","index":$(TF_TASK_INDEX)},"environment":"cloud"}`},
		{"MPI: the launcher is one of three nodes", "deepspeed-distributed", "trainer: {numNodes: 3, numProcPerNode: 2, env: [{name: A, value: b}]}", `
node: 2
  A=b
launcher: 1
  OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile
  OMPI_MCA_orte_keep_fqdn_hostnames=true
  OMPI_MCA_orte_set_default_slots=2
  OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10
  A=b`},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			job, runtime := newJob(t, c.spec), shipped(t, c.runtime)
			before := runtime.DeepCopy()
			job.Spec.RuntimeRef.Name = c.runtime
			if errs := append(job.Validate(), Validate(job, runtime)...); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			o, err := Render(job, runtime)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "=POD", "="+index)
			if diff := cmp.Diff(strings.Split(want, "\n"), environment(o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, runtime); diff != "" {
				t.Errorf("the runtime was changed:\n%s", diff)
			}
		})
	}
}

func TestMPI(t *testing.T) {
	t.Parallel()
	o, err := Render(newJob(t, "trainer: {numNodes: 3, numProcPerNode: 2}"), shipped(t, "mpi-distributed"))
	if err != nil {
		t.Fatal(err)
	}
	want := "j-node-0-0.j slots=2\nj-node-0-1.j slots=2\nj-launcher-0-0.j slots=2\n"
	if got := o.HostFile.Data["hostfile"]; got != want || o.HostFile.Name != "j-mpi-hostfile" || o.SSHKeys != "j-mpi-ssh-auth" {
		t.Errorf("the host file is %q, want %q; keys are in %q", got, want, o.SSHKeys)
	}
	for _, r := range o.JobSet.Spec.ReplicatedJobs {
		var volumes, mounts []string
		for _, v := range r.Template.Spec.Template.Spec.Volumes {
			volumes = append(volumes, v.Name)
		}
		for _, m := range r.Template.Spec.Template.Spec.Containers[0].VolumeMounts {
			mounts = append(mounts, m.Name+":"+m.MountPath)
		}
		wantVolumes, wantMounts := []string{"mpi-ssh-auth"}, []string{"mpi-ssh-auth:/home/mpiuser/.ssh"}
		if r.Name == v1alpha1.Launcher {
			wantVolumes, wantMounts = append(wantVolumes, "mpi-hostfile"), append(wantMounts, "mpi-hostfile:/etc/mpi")
		}
		if diff := cmp.Diff([][]string{wantVolumes, wantMounts}, [][]string{volumes, mounts}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Name, diff)
		}
	}
}

// TestPatches applies what Trainer's second example does.
func TestPatches(t *testing.T) {
	t.Parallel()
	job := newJob(t, `
trainer: {numNodes: 2, image: mine, command: [run], args: [fast], resourcesPerNode: {requests: {cpu: 2, memory: 4Gi}, limits: {cpu: 4}}}
runtimePatches:
- manager: example.io/platform-team
  trainingRuntimeSpec:
    template:
      metadata: {labels: {team: ml-platform}, annotations: {prometheus.io/scrape: "true"}}
      spec:
        replicatedJobs:
        - name: node
          template:
            spec:
              template:
                spec:
                  serviceAccountName: training-sa
                  nodeSelector: {node-type: training}
                  tolerations: [{key: training-workload, operator: Equal, value: "true", effect: NoSchedule}]
`)
	o, err := Render(job, shipped(t, "torch-distributed"))
	if err != nil {
		t.Fatal(err)
	}
	pod := o.JobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	if o.JobSet.Labels["team"] != "ml-platform" || o.JobSet.Annotations["prometheus.io/scrape"] != "true" {
		t.Errorf("the JobSet has %v and %v", o.JobSet.Labels, o.JobSet.Annotations)
	}
	if pod.ServiceAccountName != "training-sa" || pod.NodeSelector["node-type"] != "training" || len(pod.Tolerations) != 1 {
		t.Errorf("the Pods are %+v", pod)
	}
	c := pod.Containers[0]
	resources := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("4")},
	}
	if diff := cmp.Diff(resources, c.Resources); diff != "" || c.Image != "mine" || c.Command[0] != "run" || c.Args[0] != "fast" || c.Ports[0].ContainerPort != 29500 {
		t.Errorf("the container is %+v\n%s", c, diff)
	}
}

// TestInitializers wants what fetches to have the job's place and variables.
func TestInitializers(t *testing.T) {
	t.Parallel()
	runtime := shipped(t, "torch-distributed")
	fetch := runtime.Template.Spec.ReplicatedJobs[0].DeepCopy()
	fetch.Name, fetch.Template.Labels[v1alpha1.LabelAncestor] = v1alpha1.DatasetInitializer, v1alpha1.DatasetInitializer
	fetch.Template.Spec.Template.Spec.Containers[0] = corev1.Container{Name: v1alpha1.DatasetInitializer, Image: "fetch",
		Env:          []corev1.EnvVar{{Name: "STORAGE_URI", Value: "hf://default/one"}, {Name: "B", Value: "c"}},
		VolumeMounts: []corev1.VolumeMount{{Name: v1alpha1.InitializerVolume, MountPath: "/workspace"}}}
	runtime.Template.Spec.ReplicatedJobs = append(runtime.Template.Spec.ReplicatedJobs, *fetch)
	job := newJob(t, "initializer: {dataset: {storageUri: 's3://b/k', env: [{name: A, value: b}], secretRef: {name: keys}}}")
	if errs := Validate(job, runtime); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	o, err := Render(job, runtime)
	if err != nil {
		t.Fatal(err)
	}
	c := o.JobSet.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0]
	want := []corev1.EnvVar{{Name: "STORAGE_URI", Value: "s3://b/k"}, {Name: "B", Value: "c"}, {Name: "A", Value: "b"}}
	if diff := cmp.Diff(want, c.Env); diff != "" || c.EnvFrom[0].SecretRef.Name != "keys" {
		t.Errorf("the container is %+v\n%s", c, diff)
	}
	runtime.Template.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].VolumeMounts = nil
	if errs := Validate(job, runtime); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must have volumeMount with name - initializer") {
		t.Errorf("without a volume: %v", errs)
	}
}

// TestCheckpoint holds that those who train share a directory of the job's own.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"torch-distributed", "mpi-distributed"} {
		runtime := shipped(t, name)
		job := newJob(t, "checkpoint: {path: /kept, storage: 1Gi}")
		if errs := Validate(job, runtime); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		o, err := Render(job, runtime)
		if err != nil {
			t.Fatal(err)
		}
		if c := o.Checkpoint; c == nil || c.Name != "j-checkpoint" || !metav1.IsControlledBy(c, job) || c.Spec.Resources.Requests.Storage().String() != "1Gi" {
			t.Errorf("%s: the claim is %+v", name, o.Checkpoint)
		}
		for _, r := range o.JobSet.Spec.ReplicatedJobs {
			c := container(&r, v1alpha1.Node)
			if mount := c.VolumeMounts[len(c.VolumeMounts)-1]; mount.MountPath != "/kept" {
				t.Errorf("%s: %s has its last volume at %s", name, r.Name, mount.MountPath)
			}
		}
		pod := &runtime.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/kept"})
		if errs := Validate(job, runtime); len(errs) != 1 || !strings.Contains(errs[0].Error(), "choose another path") {
			t.Errorf("%s: a volume in its place gives %v", name, errs)
		}
	}
	if o, err := Render(newJob(t, ""), shipped(t, "torch-distributed")); err != nil || o.Checkpoint != nil {
		t.Errorf("a job without checkpoints has %v (%v)", o.Checkpoint, err)
	}
}

// TestGangOfStages holds that a group counts the Pods that there are at once.
func TestGangOfStages(t *testing.T) {
	t.Parallel()
	runtime := shipped(t, "mpi-distributed")
	runtime.PodGroupPolicy = &v1alpha1.PodGroupPolicy{Coscheduling: &v1alpha1.CoschedulingPodGroupPolicySource{}}
	o, err := Render(newJob(t, "trainer: {numNodes: 4}"), runtime)
	if err != nil {
		t.Fatal(err)
	}
	launcher, nodes := 0, 0
	for _, r := range o.JobSet.Spec.ReplicatedJobs {
		if r.Template.Spec.Template.Labels["scheduling.x-k8s.io/pod-group"] != "j" {
			t.Errorf("%s is in no group", r.Name)
		}
		if len(r.DependsOn) > 0 {
			launcher += pods(&r)
		} else {
			nodes += pods(&r)
		}
	}
	if members, _, _ := unstructured.NestedInt64(o.PodGroup.Object, "spec", "minMember"); int(members) != nodes || launcher != 1 {
		t.Errorf("%d members of %d nodes and %d launchers", members, nodes, launcher)
	}
	initialized := shipped(t, "torch-distributed")
	initialized.PodGroupPolicy = runtime.PodGroupPolicy
	trainer := initialized.Template.Spec.ReplicatedJobs[0]
	first := *trainer.DeepCopy()
	first.Name = "dataset-initializer"
	first.Template.Labels = map[string]string{v1alpha1.LabelAncestor: v1alpha1.DatasetInitializer}
	trainer.DependsOn = []v1alpha2.DependsOn{{Name: first.Name, Status: v1alpha2.DependencyComplete}}
	initialized.Template.Spec.ReplicatedJobs = []v1alpha2.ReplicatedJob{first, trainer}
	if o, err = Render(newJob(t, "trainer: {numNodes: 3}"), initialized); err != nil {
		t.Fatal(err)
	}
	if members, _, _ := unstructured.NestedInt64(o.PodGroup.Object, "spec", "minMember"); members != 3 || o.JobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Labels["scheduling.x-k8s.io/pod-group"] != "" {
		t.Errorf("with an initializer there are %d members", members)
	}
}

func TestGangs(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]v1alpha1.PodGroupPolicy{
		"scheduling.x-k8s.io/v1alpha1":  {Coscheduling: &v1alpha1.CoschedulingPodGroupPolicySource{ScheduleTimeoutSeconds: ptr.To(int32(7))}},
		"scheduling.volcano.sh/v1beta1": {Volcano: &v1alpha1.VolcanoPodGroupPolicySource{NetworkTopology: &v1alpha1.VolcanoNetworkTopology{Mode: "hard", HighestTierAllowed: ptr.To(2)}}},
	} {
		runtime := shipped(t, "torch-distributed")
		runtime.PodGroupPolicy = &policy
		o, err := Render(newJob(t, "trainer: {numNodes: 3, resourcesPerNode: {requests: {cpu: 500m}}}"), runtime)
		if err != nil {
			t.Fatal(err)
		}
		spec := map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "1500m"}}
		pod := o.JobSet.Spec.ReplicatedJobs[0].Template.Spec.Template
		mark := pod.Annotations["scheduling.k8s.io/group-name"]
		if policy.Coscheduling != nil {
			spec["scheduleTimeoutSeconds"], mark = int64(7), pod.Labels["scheduling.x-k8s.io/pod-group"]
		} else {
			spec["networkTopology"] = map[string]any{"mode": "hard", "highestTierAllowed": int64(2)}
		}
		if diff := cmp.Diff(spec, o.PodGroup.Object["spec"]); diff != "" || o.PodGroup.GetAPIVersion() != name || mark != "j" {
			t.Errorf("the group is of %s, Pods are marked %q (-want +got):\n%s", o.PodGroup.GetAPIVersion(), mark, diff)
		}
	}
}

// TestStatus has the trainer's containers, and no others, know where they tell how
// far they are, as Kubeflow Trainer has it.
func TestStatus(t *testing.T) {
	t.Parallel()
	job := newJob(t, "trainer: {numNodes: 2}")
	o, err := Render(job, shipped(t, "deepspeed-distributed"))
	if err != nil {
		t.Fatal(err)
	}
	o.AddStatus(job, "https://server.ns.svc:10443", []byte("PEM"))
	if diff := cmp.Diff(map[string]string{"ca.crt": "PEM"}, o.Authorities.Data); diff != "" || o.Authorities.Name != "j-tls-config" {
		t.Errorf("ConfigMap %s (-want +got):\n%s", o.Authorities.Name, diff)
	}
	for i := range o.JobSet.Spec.ReplicatedJobs {
		r := &o.JobSet.Spec.ReplicatedJobs[i]
		pod := &r.Template.Spec.Template.Spec
		var got []string
		for _, e := range pod.Containers[0].Env {
			if strings.HasPrefix(e.Name, "KUBEFLOW_TRAINER_SERVER_") {
				got = append(got, e.Name+"="+e.Value)
			}
		}
		var want []string
		if r.Template.Labels[v1alpha1.LabelAncestor] == v1alpha1.AncestorTrainer {
			want = []string{
				"KUBEFLOW_TRAINER_SERVER_URL=https://server.ns.svc:10443/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/j/status",
				"KUBEFLOW_TRAINER_SERVER_CA_CERT=/var/run/secrets/kubeflow/trainer/ca.crt",
				"KUBEFLOW_TRAINER_SERVER_TOKEN=/var/run/secrets/kubeflow/trainer/token",
			}
			sources := pod.Volumes[len(pod.Volumes)-1].Projected.Sources
			if sources[0].ServiceAccountToken.Audience != "trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/j/status" || sources[1].ConfigMap.Name != "j-tls-config" {
				t.Errorf("the volume is %+v", sources)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Name, diff)
		}
	}
	if errs := o.JobSet.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
}
