// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

const (
	pytorch = "{replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}"
	tf      = "{template: {spec: {containers: [{name: tensorflow, image: i}]}}}"
	xgb     = "{replicas: 1, template: {spec: {containers: [{name: xgboost, image: i}]}}}"
	paddle  = "{template: {spec: {containers: [{name: paddle, image: i}]}}}"
	jax     = "{template: {spec: {containers: [{name: jax, image: i}]}}}"
	mpi     = "{template: {spec: {containers: [{name: any, image: i}]}}}"
	mpi2    = "{replicas: 2, template: {spec: {containers: [{name: any, image: i}]}}}"
	mx      = "{template: {spec: {containers: [{name: mxnet, image: i}]}}}"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	head := "\nmetadata: {name: j}\nspec: "
	cases := map[string]struct{ reason, in, want string }{
		"PyTorch":             {"Valid as upstream's", "kind: PyTorchJob" + head + "{pytorchReplicaSpecs: {Master: " + pytorch + ", Worker: " + pytorch + "}}", ""},
		"PyTorchLower":        {"The operator knows types in any case, so admission does", "kind: PyTorchJob" + head + "{pytorchReplicaSpecs: {worker: " + pytorch + "}}", ""},
		"Name":                {"A Service could not have this name", "kind: PyTorchJob\nmetadata: {name: 0-j}\nspec: {pytorchReplicaSpecs: {Worker: " + pytorch + "}}", "metadata.name"},
		"NameLong":            {"The last replica's Service could not be named", "kind: JAXJob\nmetadata: {name: " + strings.Repeat("a", 55) + "}\nspec: {jaxReplicaSpecs: {Worker: {replicas: 11, template: {spec: {containers: [{name: jax, image: i}]}}}}}", "metadata.name"},
		"NameFits":            {"63 characters are enough", "kind: JAXJob\nmetadata: {name: " + strings.Repeat("a", 54) + "}\nspec: {jaxReplicaSpecs: {Worker: " + jax + "}}", ""},
		"NoReplicas":          {"There must be something to run", "kind: TFJob" + head + "{}", "spec.tfReplicaSpecs"},
		"NullReplica":         {"Upstream crashes at it", "kind: TFJob" + head + "{tfReplicaSpecs: {Worker: null}}", "spec.tfReplicaSpecs[Worker].template.spec.containers"},
		"NoContainers":        {"A Pod has containers", "kind: TFJob" + head + "{tfReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}", "containers"},
		"NoImage":             {"A container has an image", "kind: TFJob" + head + "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow}]}}}}}", "containers[0].image"},
		"NoMain":              {"Something must train", "kind: TFJob" + head + "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: other, image: i}]}}}}}", "at least one container with name tensorflow"},
		"UnknownType":         {"Also of a TFJob, where upstream does not look", "kind: TFJob" + head + "{tfReplicaSpecs: {Wroker: " + tf + "}}", "spec.tfReplicaSpecs[Wroker]"},
		"TypeTwice":           {"One would silently win", "kind: TFJob" + head + "{tfReplicaSpecs: {worker: " + tf + ", Worker: " + tf + "}}", "Duplicate"},
		"ChiefAndMaster":      {"They are the same", "kind: TFJob" + head + "{tfReplicaSpecs: {Chief: " + tf + ", Master: " + tf + "}}", "more than 1 Chief or Master"},
		"SuccessPolicy":       {"A typing error", "kind: TFJob" + head + "{successPolicy: All, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.successPolicy"},
		"TwoMasters":          {"Rank 0 is one", "kind: PyTorchJob" + head + "{pytorchReplicaSpecs: {Master: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}", "must be 1"},
		"MasterUncounted":     {"Upstream wants the number written out", "kind: PyTorchJob" + head + "{pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}", "must be 1"},
		"NoWorkers":           {"As upstream", "kind: PyTorchJob" + head + "{pytorchReplicaSpecs: {Worker: {replicas: 0, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}", "must be at least 1"},
		"ElasticMaster":       {"What is elastic are workers", "kind: PyTorchJob" + head + "{elasticPolicy: {}, pytorchReplicaSpecs: {Master: " + pytorch + "}}", "spec.pytorchReplicaSpecs[Worker]"},
		"ElasticBoth":         {"Two places for one number", "kind: PyTorchJob" + head + "{nprocPerNode: '2', elasticPolicy: {nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: " + pytorch + "}}", "spec.elasticPolicy.nProcPerNode"},
		"ElasticBounds":       {"torchrun would refuse it", "kind: PyTorchJob" + head + "{elasticPolicy: {minReplicas: 3, maxReplicas: 2}, pytorchReplicaSpecs: {Worker: " + pytorch + "}}", "spec.elasticPolicy.maxReplicas"},
		"Nproc":               {"torchrun would refuse it", "kind: PyTorchJob" + head + "{nprocPerNode: many, pytorchReplicaSpecs: {Worker: " + pytorch + "}}", "spec.nprocPerNode"},
		"Backend":             {"torchrun would refuse it", "kind: PyTorchJob" + head + "{elasticPolicy: {rdzvBackend: zookeeper}, pytorchReplicaSpecs: {Worker: " + pytorch + "}}", "spec.elasticPolicy.rdzvBackend"},
		"XGBoost":             {"Valid as upstream's", "kind: XGBoostJob" + head + "{xgbReplicaSpecs: {Master: " + xgb + "}}", ""},
		"XGBoostMasterless":   {"The tracker is in the master", "kind: XGBoostJob" + head + "{xgbReplicaSpecs: {Worker: " + xgb + "}}", "spec.xgbReplicaSpecs[Master]: Required value: must be present"},
		"Paddle":              {"Valid as upstream's", "kind: PaddleJob" + head + "{paddleReplicaSpecs: {Worker: " + paddle + "}}", ""},
		"PaddleElastic":       {"Upstream crashes at it", "kind: PaddleJob" + head + "{elasticPolicy: {}, paddleReplicaSpecs: {Master: " + paddle + "}}", "spec.paddleReplicaSpecs[Worker]"},
		"JAXMaster":           {"JAX has workers alone", "kind: JAXJob" + head + "{jaxReplicaSpecs: {Master: " + jax + "}}", "spec.jaxReplicaSpecs[Master]"},
		"JAXManagedBy":        {"Upstream forgets to look", "kind: JAXJob" + head + "{runPolicy: {managedBy: me}, jaxReplicaSpecs: {Worker: " + jax + "}}", "spec.runPolicy.managedBy"},
		"ManagedBy":           {"As upstream", "kind: TFJob" + head + "{runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, tfReplicaSpecs: {Worker: " + tf + "}}", ""},
		"ManagedByOther":      {"As upstream", "kind: TFJob" + head + "{runPolicy: {managedBy: kueue.x-k8s.io/other-controller}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.managedBy"},
		"MPI":                 {"Its container has any name", "kind: MPIJob\nmetadata: {name: 0.dots}\nspec: {mpiReplicaSpecs: {Launcher: " + mpi + ", Worker: " + mpi + "}}", ""},
		"MPILauncherless":     {"mpirun must run", "kind: MPIJob" + head + "{mpiReplicaSpecs: {Worker: " + mpi + "}}", "spec.mpiReplicaSpecs[Launcher]"},
		"MPIContainerUnnamed": {"As upstream", "kind: MPIJob" + head + "{mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{image: i}]}}}}}", "containers[0].name"},
		"MPI2":                {"Valid as the MPI operator's", "kind: MPIJob" + head + "{mpiImplementation: MPICH, runPolicy: {managedBy: kubeflow.org/mpi-operator}, mpiReplicaSpecs: {Launcher: " + mpi + ", Worker: " + mpi2 + "}}", ""},
		"MPI2Alone":           {"A launcher can work alone", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, runLauncherAsWorker: true, mpiReplicaSpecs: {Launcher: " + mpi + "}}", ""},
		"MPI2Name":            {"Its workers have host names", "kind: MPIJob\nmetadata: {name: 0.dots}\nspec: {mpiImplementation: OpenMPI, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "metadata.name"},
		"MPI2Uncounted":       {"The MPI operator wants the number of workers written out", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, mpiReplicaSpecs: {Launcher: " + mpi + ", Worker: " + mpi + "}}", "spec.mpiReplicaSpecs[Worker].replicas"},
		"MPI2Other":           {"A typing error", "kind: MPIJob" + head + "{mpiImplementation: LAM, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "spec.mpiImplementation"},
		"MPI2Creation":        {"The MPI operator would wait for the workers", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, launcherCreationPolicy: Later, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "spec.launcherCreationPolicy"},
		"MPI2Keys":            {"Nothing can be mounted there", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, sshAuthMountPath: .ssh, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "spec.sshAuthMountPath"},
		"MPI2Restart":         {"The launcher's Job knows no other", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, mpiReplicaSpecs: {Launcher: {restartPolicy: ExitCode, template: {spec: {containers: [{name: any, image: i}]}}}}}", "spec.mpiReplicaSpecs[Launcher].restartPolicy"},
		"MPI2Scope":           {"The launcher is not restarted with the workers", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, runPolicy: {restartScope: Job}, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "spec.runPolicy.restartScope"},
		"MPI2ManagedBy":       {"As the MPI operator", "kind: MPIJob" + head + "{mpiImplementation: OpenMPI, runPolicy: {managedBy: kubeflow.org/training-operator}, mpiReplicaSpecs: {Launcher: " + mpi + "}}", "spec.runPolicy.managedBy"},
		"MX":                  {"Valid as upstream's", "kind: MXJob" + head + "{jobMode: MXTrain, mxReplicaSpecs: {Scheduler: " + mx + ", Server: " + mx + ", Worker: " + mx + "}}", ""},
		"MXMode":              {"A typing error", "kind: MXJob" + head + "{jobMode: Train, mxReplicaSpecs: {Worker: " + mx + "}}", "spec.jobMode"},
		"Negative":            {"It would mean nothing", "kind: TFJob" + head + "{runPolicy: {backoffLimit: -1, ttlSecondsAfterFinished: -1, activeDeadlineSeconds: 0}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.activeDeadlineSeconds"},
		"CleanPodPolicy":      {"A typing error", "kind: TFJob" + head + "{runPolicy: {cleanPodPolicy: Some}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.cleanPodPolicy"},
		"RestartPolicy":       {"A typing error", "kind: TFJob" + head + "{tfReplicaSpecs: {Worker: {restartPolicy: Sometimes, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}", "restartPolicy"},
		"Checkpoint":          {"Valid without a word more", "kind: TFJob" + head + "{runPolicy: {checkpoint: {}}, tfReplicaSpecs: {Worker: " + tf + "}}", ""},
		"CheckpointRelative":  {"Where would that be", "kind: TFJob" + head + "{runPolicy: {checkpoint: {path: data}}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.checkpoint.path"},
		"CheckpointRoot":      {"It would hide the image", "kind: TFJob" + head + "{runPolicy: {checkpoint: {path: /}}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.checkpoint.path"},
		"CheckpointEmpty":     {"Nothing could be kept", "kind: TFJob" + head + "{runPolicy: {checkpoint: {storage: 0}}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.checkpoint.storage"},
		"CheckpointMode":      {"A typing error", "kind: TFJob" + head + "{runPolicy: {checkpoint: {accessModes: [RWX]}}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.checkpoint.accessModes[0]"},
		"CheckpointTaken":     {"One would hide the other", "kind: TFJob" + head + "{runPolicy: {checkpoint: {}}, tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: i, volumeMounts: [{name: v, mountPath: /checkpoint/}]}]}}}}}", "choose another path"},
		"CheckpointVolume":    {"Pods would be refused", "kind: TFJob" + head + "{runPolicy: {checkpoint: {}}, tfReplicaSpecs: {Worker: {template: {spec: {volumes: [{name: job-checkpoint}], containers: [{name: tensorflow, image: i}]}}}}}", "rename it"},
		"RestartScope":        {"A typing error", "kind: TFJob" + head + "{runPolicy: {restartScope: All}, tfReplicaSpecs: {Worker: " + tf + "}}", "spec.runPolicy.restartScope"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if errs := v1.Validate(read(t, tc.in)); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q in it", tc.reason, got, tc.want)
			}
		})
	}
}

func TestManagedByStays(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"PyTorchJob", "JAXJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "MXJob"} {
		before := read(t, "kind: "+kind+"\nspec: {runPolicy: {managedBy: kubeflow.org/training-operator}}")
		after := read(t, "kind: "+kind+"\nspec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}")
		if len(v1.ValidateUpdate(after, before)) == 0 || len(v1.ValidateUpdate(before, before)) != 0 {
			t.Errorf("managedBy of a %s must not be changed, and only that", kind)
		}
		small, large := read(t, "kind: "+kind+"\nspec: {runPolicy: {checkpoint: {storage: 1Gi}}}"), read(t, "kind: "+kind+"\nspec: {runPolicy: {checkpoint: {storage: 2Gi}}}")
		if got := v1.ValidateUpdate(large, small); len(got) != 1 || got[0].Field != "spec.runPolicy.checkpoint" {
			t.Errorf("the checkpoint of a %s is changed with %v", kind, got)
		}
	}
}

// TestVersionStays holds that a job stays of the version in which it was written,
// by which it runs.
func TestVersionStays(t *testing.T) {
	t.Parallel()
	older, later := read(t, "kind: MPIJob\nspec: {}"), read(t, "kind: MPIJob\nspec: {mpiImplementation: OpenMPI}")
	for _, pair := range [][2]v1.Job{{older, later}, {later, older}} {
		errs := v1.ValidateUpdate(pair[1], pair[0])
		want := "this MPIJob has version " + pair[0].Traits().GroupVersion().Version + ","
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("an update gives %v, want %q", errs, want)
		}
	}
	if later.Traits().GroupVersion().String() != "kubeflow.org/v2beta1" {
		t.Errorf("the later version is %s", later.Traits().GroupVersion())
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	if got := v1.Warnings(read(t, "kind: PyTorchJob\nspec: {elasticPolicy: {nProcPerNode: 1}}")); len(got) != 1 {
		t.Errorf("a deprecated field is told of by %q", got)
	}
	if got := v1.Warnings(read(t, "kind: PyTorchJob\nspec: {nprocPerNode: '1'}")); len(got) != 0 {
		t.Errorf("an ordinary job is warned of by %q", got)
	}
}
