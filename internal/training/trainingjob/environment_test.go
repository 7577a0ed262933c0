// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// environment writes the variables of a Pod's containers, one a line.
func environment(p *corev1.Pod) []string {
	var lines []string
	for _, c := range p.Spec.Containers {
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = "<" + e.ValueFrom.FieldRef.FieldPath + ">"
			}
			lines = append(lines, e.Name+"="+value)
		}
	}
	return lines
}

// TestEnvironment holds what each replica is told to what the training operator
// tells it, variable by variable, in its order.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	const distMnist = `{kind: TFJob, metadata: {name: dist-mnist-for-e2e-test}, spec: {DYNAMIC tfReplicaSpecs: {
		Chief: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: i}, {name: other, image: i}]}}},
		PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: i}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}`
	dynamic := strings.Replace(distMnist, "DYNAMIC", "enableDynamicWorker: true,", 1)
	static := strings.Replace(distMnist, "DYNAMIC", "", 1)
	const cluster = `TF_CONFIG={"cluster":{"chief":["dist-mnist-for-e2e-test-chief-0.ns.svc:2222"],"ps":["dist-mnist-for-e2e-test-ps-0.ns.svc:2222"],"worker":["dist-mnist-for-e2e-test-worker-0.ns.svc:2222","dist-mnist-for-e2e-test-worker-1.ns.svc:2222"]},`
	const simple = `{kind: PyTorchJob, metadata: {name: pytorch-simple}, spec: {NPROC pytorchReplicaSpecs: {
		Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i, env: [{name: RANK, value: mine}]}]}}},
		Worker: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`
	auto := strings.Replace(simple, "NPROC", "", 1)
	master := []string{"MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=pytorch-simple-master-0", "PET_MASTER_ADDR=pytorch-simple-master-0"}
	const mxJob = `{kind: MXJob, spec: {jobMode: MXTrain, mxReplicaSpecs: {
		Scheduler: {template: {spec: {containers: [{name: mxnet, image: i}]}}},
		Server: {template: {metadata: {annotations: {tuner-server-key: gpu}}, spec: {containers: [{name: mxnet, image: i}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: mxnet, image: i}]}}}}}}`
	cases := map[string]struct {
		reason, job string
		replica     Replica
		want        []string
	}{
		"PyTorchMaster": {"the user's variables come first", auto, Replica{v1.Master, 0}, slices.Concat([]string{"RANK=mine", "PYTHONUNBUFFERED=1"}, master, []string{"WORLD_SIZE=2", "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"})},
		"PyTorchWorker": {"workers rank after the master", auto, Replica{v1.Worker, 0}, slices.Concat([]string{"PYTHONUNBUFFERED=1"}, master, []string{"WORLD_SIZE=2", "RANK=1", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"})},
		"PyTorchProcesses": {"the world has all processes where their number is known", strings.Replace(simple, "NPROC", "nprocPerNode: '4',", 1), Replica{v1.Worker, 0},
			slices.Concat([]string{"PYTHONUNBUFFERED=1"}, master, []string{"WORLD_SIZE=8", "RANK=1", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=4", "PET_NNODES=2"})},
		"PyTorchElastic": {"torchrun meets at worker 0", `{kind: PyTorchJob, spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 100, rdzvId: me, rdzvConf: [{key: a, value: b}, {key: c, value: d}]}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`, Replica{v1.Worker, 1},
			[]string{"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=j-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=1:3", "PET_MAX_RESTARTS=100", "PET_RDZV_ID=me", "PET_RDZV_CONF=a=b,c=d"}},
		"PyTorchEtcd": {"or where the user says", `{kind: PyTorchJob, spec: {elasticPolicy: {rdzvBackend: etcd, rdzvHost: etcd, rdzvPort: 2379, standalone: true, nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`, Replica{v1.Worker, 1},
			[]string{"PYTHONUNBUFFERED=1", "PET_RDZV_ENDPOINT=etcd:2379", "PET_RDZV_BACKEND=etcd", "PET_NNODES=2:2", "PET_NPROC_PER_NODE=2", "PET_STANDALONE="}},
		"TFWorker":       {"every replica knows all", static, Replica{v1.TFWorker, 1}, []string{cluster + `"task":{"type":"worker","index":1},"environment":"cloud"}`}},
		"TFChief":        {"only the container that trains is told", static, Replica{v1.TFChief, 0}, []string{cluster + `"task":{"type":"chief","index":0},"environment":"cloud"}`}},
		"TFAlone":        {"a job of one replica is not distributed", `{kind: TFJob, spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}`, Replica{v1.TFWorker, 0}, nil},
		"TFDynamic":      {"a dynamic worker knows itself and the servers", dynamic, Replica{v1.TFWorker, 1}, []string{`TF_CONFIG={"cluster":{"worker":{"1":"dist-mnist-for-e2e-test-worker-1.ns.svc:2222"},"ps":["dist-mnist-for-e2e-test-ps-0.ns.svc:2222"]},"task":{"type":"worker","index":1}}`}},
		"TFServer":       {"a server knows itself", dynamic, Replica{v1.TFPS, 0}, []string{`TF_CONFIG={"cluster":{"worker":{},"ps":["dist-mnist-for-e2e-test-ps-0.ns.svc:2222"]},"task":{"type":"ps","index":0}}`}},
		"TFDynamicChief": {"a chief knows nobody", dynamic, Replica{v1.TFChief, 0}, []string{`TF_CONFIG={"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}`}},
		"XGBoost": {"the tracker, and LightGBM's list", strings.NewReplacer("POLICY", "Never", "RUN", "{}").Replace(xgboostJob), Replica{v1.Worker, 1},
			[]string{"MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=3", "RANK=2", "PYTHONUNBUFFERED=1", "WORKER_PORT=9999", "WORKER_ADDRS=j-worker-0,j-worker-1"}},
		"XGBoostAlone": {"no list for one", `{kind: XGBoostJob, spec: {xgbReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: xgboost, image: i}]}}}}}}`, Replica{v1.Master, 0},
			[]string{"MASTER_PORT=9999", "MASTER_ADDR=j-master-0", "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1"}},
		"JAX": {"worker 0 coordinates", strings.NewReplacer("POLICY", "Never", "RUN", "{}").Replace(jaxJob), Replica{v1.Worker, 1},
			[]string{"PYTHONUNBUFFERED=1", "COORDINATOR_PORT=6666", "COORDINATOR_ADDRESS=j-worker-0", "NUM_PROCESSES=2", "PROCESS_ID=1"}},
		"PaddleFirst": {"worker 0 goes by its address", `{kind: PaddleJob, spec: {paddleReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: paddle, image: i, ports: [{name: master, containerPort: 37777}]}]}}}}}}`, Replica{v1.Worker, 0},
			[]string{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=2", "POD_IP_DUMMY=<status.podIP>", "PADDLE_MASTER=$(POD_IP_DUMMY):37777"}},
		"PaddleSecond": {"the others by its name", `{kind: PaddleJob, spec: {paddleReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: paddle, image: i}]}}}}}}`, Replica{v1.Worker, 1},
			[]string{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=2", "PADDLE_MASTER=j-worker-0:36543"}},
		"PaddleServer": {"parameter servers are masters", `{kind: PaddleJob, spec: {paddleReplicaSpecs: {Master: {template: {spec: {containers: [{name: paddle, image: i}]}}}, Worker: {template: {spec: {containers: [{name: paddle, image: i}]}}}}}}`, Replica{v1.Master, 0},
			[]string{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=2", "POD_IP_DUMMY=<status.podIP>", "PADDLE_MASTER=$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM=1"}},
		"PaddleTrainer": {"and workers trainers", `{kind: PaddleJob, spec: {paddleReplicaSpecs: {Master: {template: {spec: {containers: [{name: paddle, image: i}]}}}, Worker: {template: {spec: {containers: [{name: paddle, image: i}]}}}}}}`, Replica{v1.Worker, 0},
			[]string{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=j", "PADDLE_NNODES=2", "PADDLE_MASTER=j-master-0:36543", "PADDLE_TRAINER_NUM=1"}},
		"MXNet": {"by the scheduler", mxJob, Replica{v1.MXWorker, 1}, []string{
			`MX_CONFIG={"cluster":{"scheduler":[{"url":"j-scheduler-0","port":9091}],"server":[{"url":"j-server-0","port":9091}],"worker":[{"url":"j-worker-0","port":9091},{"url":"j-worker-1","port":9091}]},"labels":{"scheduler":"","server":"gpu","worker":""},"task":{"type":"worker","index":1}}`,
			"DMLC_PS_ROOT_PORT=9091", "DMLC_PS_ROOT_URI=j-scheduler-0", "DMLC_NUM_SERVER=1", "DMLC_NUM_WORKER=2", "DMLC_ROLE=worker", "DMLC_USE_KUBERNETES=1", "DMLC_WORKER_ID=1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, tc.job)
			if diff := cmp.Diff(tc.want, environment(newPod(f, job, tc.replica))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLabels holds by what clients find Pods, and whose log they read.
func TestLabels(t *testing.T) {
	t.Parallel()
	f, job := read(t, strings.NewReplacer("POLICY", "ExitCode", "RUN", "{}").Replace(pytorchJob))
	p := newPod(f, job, Replica{v1.Master, 0})
	want := map[string]string{
		"training.kubeflow.org/operator-name": "pytorchjob-controller", "training.kubeflow.org/job-name": "j",
		"training.kubeflow.org/replica-type": "master", "training.kubeflow.org/replica-index": "0", "training.kubeflow.org/job-role": "master",
	}
	if diff := cmp.Diff(want, p.Labels); diff != "" || p.Name != "j-master-0" || p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%s with %s has other labels (-want +got)\n%s", p.Name, p.Spec.RestartPolicy, diff)
	}
	if p := newPod(f, job, Replica{v1.Worker, 1}); len(p.Spec.InitContainers) != 1 || p.Labels[v1.LabelJobRole] != "" {
		t.Errorf("a worker waits for the master by %d containers, and its role is %q", len(p.Spec.InitContainers), p.Labels[v1.LabelJobRole])
	}
	masters := map[string]string{
		pytorchJob: "master-0", elasticJob: "worker-0", xgboostJob: "master-0", jaxJob: "worker-0", dynamicJob: "worker-0",
	}
	for text, want := range masters {
		f, job := read(t, strings.NewReplacer("POLICY", "Never", "RUN", "{}").Replace(text))
		var got []string
		for _, kind := range slices.Sorted(maps.Keys(job.Replicas())) {
			for i := range int(*job.Replicas()[kind].Replicas) {
				if newPod(f, job, Replica{kind, i}).Labels[v1.LabelJobRole] == "master" {
					got = append(got, strings.ToLower(string(kind))+"-"+strconv.Itoa(i))
				}
			}
		}
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("the masters of a %s are %v, want %s", job.Traits().Kind, got, want)
		}
	}
}
