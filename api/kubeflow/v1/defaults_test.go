// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

func TestSetDefaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, in, want string }{
		"PyTorch": {
			reason: "One replica, restarted on failure, that listens on the kind's port, with torchrun's own idea of processes",
			in:     "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}",
			want:   "kind: PyTorchJob\nspec: {runPolicy: {cleanPodPolicy: None}, nprocPerNode: auto, pytorchReplicaSpecs: {Worker: {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: i, ports: [{name: pytorchjob-port, containerPort: 23456}]}]}}}}}",
		},
		"Spelling": {
			reason: "A replica type may be spelt in any case",
			in:     "kind: TFJob\nspec: {tfReplicaSpecs: {WORKER: {replicas: 2}, ps: {}}}",
			want:   "kind: TFJob\nspec: {runPolicy: {cleanPodPolicy: None}, successPolicy: '', tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: Never}, PS: {replicas: 1, restartPolicy: Never}}}",
		},
		"OtherContainer": {
			reason: "Without a container of the kind's name, the first listens",
			in:     "kind: JAXJob\nspec: {jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: a}, {name: b}]}}}}}",
			want:   "kind: JAXJob\nspec: {runPolicy: {cleanPodPolicy: None}, jaxReplicaSpecs: {Worker: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: a, ports: [{name: jaxjob-port, containerPort: 6666}]}, {name: b}]}}}}}",
		},
		"OwnPort": {
			reason: "A port of the right name stays, and what the user wrote",
			in:     "kind: XGBoostJob\nspec: {runPolicy: {cleanPodPolicy: All}, xgbReplicaSpecs: {Master: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: xgboost, ports: [{name: xgboostjob-port, containerPort: 9991}]}]}}}}}",
			want:   "kind: XGBoostJob\nspec: {runPolicy: {cleanPodPolicy: All}, xgbReplicaSpecs: {Master: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: xgboost, ports: [{name: xgboostjob-port, containerPort: 9991}]}]}}}}}",
		},
		"ElasticMin": {
			reason: "One bound of an elastic policy is both",
			in:     "kind: PyTorchJob\nspec: {elasticPolicy: {minReplicas: 2, nProcPerNode: 4}, pytorchReplicaSpecs: {Worker: {replicas: 3}}}",
			want:   "kind: PyTorchJob\nspec: {runPolicy: {cleanPodPolicy: None}, elasticPolicy: {minReplicas: 2, maxReplicas: 2, nProcPerNode: 4}, pytorchReplicaSpecs: {Worker: {replicas: 3, restartPolicy: OnFailure}}}",
		},
		"ElasticNone": {
			reason: "Without bounds the number of workers is both",
			in:     "kind: PaddleJob\nspec: {elasticPolicy: {}, paddleReplicaSpecs: {Worker: {replicas: 3}}}",
			want:   "kind: PaddleJob\nspec: {runPolicy: {cleanPodPolicy: None}, elasticPolicy: {minReplicas: 3, maxReplicas: 3}, paddleReplicaSpecs: {Worker: {replicas: 3, restartPolicy: OnFailure}}}",
		},
		"ElasticWithoutWorkers": {
			reason: "A wrong job does no harm before it is refused",
			in:     "kind: PyTorchJob\nspec: {elasticPolicy: {}, nprocPerNode: gpu, pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: null}}",
			want:   "kind: PyTorchJob\nspec: {runPolicy: {cleanPodPolicy: None}, nprocPerNode: gpu, elasticPolicy: {minReplicas: 1, maxReplicas: 1}, pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: OnFailure}, Worker: null}}",
		},
		"MPI": {
			reason: "An MPIJob has no workers unless told, no port, and the policy of cleaning up in an older place",
			in:     "kind: MPIJob\nspec: {cleanPodPolicy: Running, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: mpi}]}}}, Worker: {}}}",
			want:   "kind: MPIJob\nspec: {slotsPerWorker: 1, cleanPodPolicy: Running, runPolicy: {cleanPodPolicy: Running}, mpiReplicaSpecs: {Launcher: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: mpi}]}}}, Worker: {replicas: 0, restartPolicy: Never}}}",
		},
		"MPIBoth": {
			reason: "Of two policies of cleaning up the newer place wins",
			in:     "kind: MPIJob\nspec: {cleanPodPolicy: Running, runPolicy: {cleanPodPolicy: All}, mpiReplicaSpecs: {Launcher: {}}}",
			want:   "kind: MPIJob\nspec: {slotsPerWorker: 1, cleanPodPolicy: Running, runPolicy: {cleanPodPolicy: All}, mpiReplicaSpecs: {Launcher: {replicas: 1, restartPolicy: Never}}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := read(t, tc.in)
			v1.SetDefaults(got)
			if diff := cmp.Diff(read(t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			again := got.DeepCopyObject().(v1.Job)
			v1.SetDefaults(again)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("defaults of defaults differ (-once +twice)\n%s", diff)
			}
		})
	}
}

// TestSetDefaultsIsTotal holds that any job that can be read gets its defaults:
// validation may be off, and a job that crashes the operator crashes it for all.
func TestSetDefaultsIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		job := rapid.SampledFrom(v1.Jobs()).Draw(rt, "kind")
		types := append(slices.Clone(job.Traits().Types), "worker", "Odd", "")
		replicas := map[string]any{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(types), rapid.ID).Draw(rt, "types") {
			replicas[string(name)] = rapid.SampledFrom([]any{
				nil, map[string]any{}, map[string]any{"replicas": -1},
				map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{}}}}},
			}).Draw(rt, "replica")
		}
		text, err := yaml.Marshal(map[string]any{"metadata": map[string]any{"name": "j"}, "spec": map[string]any{job.Traits().Field: replicas}})
		if err != nil {
			rt.Fatal(err)
		}
		if err := yaml.Unmarshal(text, job); err != nil {
			rt.Fatal(err)
		}
		_, _ = v1.Validate(job), v1.Warnings(job)
		v1.SetDefaults(job)
		for _, name := range slices.Sorted(maps.Keys(job.Replicas())) {
			if spec := job.Replicas()[name]; spec != nil && (spec.Replicas == nil || spec.RestartPolicy == "") {
				rt.Errorf("%s %s has no default", job.Traits().Kind, name)
			}
		}
	})
}
