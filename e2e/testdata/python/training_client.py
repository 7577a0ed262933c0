# SPDX-License-Identifier: Apache-2.0
"""Every method of TrainingClient, from the unmodified kubeflow-training SDK, against the cluster in KUBECONFIG, or that whose Pod runs this."""

import os

from kubeflow.training import TrainingClient, models
from kubeflow.training.constants import constants
from kubernetes import client as kubernetes

from calls import Recorder, eventually, refused

# A namespace without other jobs: the SDK cannot list those that have no runPolicy.
client = Recorder(TrainingClient(config_file=os.environ.get("KUBECONFIG"), namespace="sdk", job_kind=constants.PYTORCHJOB_KIND))
if "KUBECONFIG" in os.environ:
    client.core_api.create_namespace(kubernetes.V1Namespace(metadata=kubernetes.V1ObjectMeta(name="sdk")))


def from_function():
    """A Python function as a job of three workers."""

    def train(parameters):
        import json
        import os

        config = json.loads(os.environ["TF_CONFIG"])
        for epoch in range(parameters["epochs"]):
            print(f"epoch {epoch} of {config['task']['index']} among {len(config['cluster']['worker'])}, {os.environ['GREETING']}")

    tf = {"job_kind": constants.TFJOB_KIND}
    client.create_job(name="function", train_func=train, parameters={"epochs": 10}, num_workers=3, env_vars={"GREETING": "hello"}, **tf)
    seen = []
    job = client.wait_for_job_conditions("function", wait_timeout=180, polling_interval=1, callback=seen.append, **tf)
    assert seen and job.status.completion_time
    assert client.is_job_created("function", **tf) and client.is_job_succeeded("function", **tf)
    assert not (client.is_job_running("function", **tf) or client.is_job_restarting("function", **tf) or client.is_job_failed("function", **tf))
    conditions = {c.type: c.status for c in client.get_job_conditions("function", **tf)}
    assert conditions == {"Created": "True", "Running": "False", "Succeeded": "True"}, conditions
    assert sorted(client.get_job_pod_names("function")) == [f"function-worker-{i}" for i in range(3)]
    assert client.get_job_pod_names("function", is_master=True) == ["function-worker-0"]
    assert [p.metadata.name for p in client.get_job_pods("function", replica_type="worker", replica_index=2)] == ["function-worker-2"]
    logs, _ = client.get_job_logs("function", **tf)
    assert set(logs) == {"function-worker-0"} and "epoch 9 of 0 among 3, hello" in logs["function-worker-0"], logs
    assert set(client.get_job_logs("function", is_master=False, **tf)[0]) == {f"function-worker-{i}" for i in range(3)}
    client.get_job_logs("function", follow=True, **tf)
    refused(RuntimeError, client.create_job, name="function", train_func=train, parameters={"epochs": 1}, **tf)

    def alone():
        import os

        print("rank", os.environ["PET_NNODES"])

    client.create_job(name="alone", train_func=alone)
    client.wait_for_job_conditions("alone", wait_timeout=180, polling_interval=1)
    logs, events = client.get_job_logs("alone", verbose=True)
    # Where many jobs run at once, few events are written of each.
    assert "rank 1" in logs["alone-master-0"] and events.keys() & {"pytorchjob/alone", "pod/alone-master-0"}, (logs, events)


def of_each_kind():
    """A job of each kind that the SDK knows, until all have succeeded."""
    kinds = {
        constants.PYTORCHJOB_KIND: ("pytorch", models.KubeflowOrgV1PyTorchJob, models.KubeflowOrgV1PyTorchJobSpec, "pytorch_replica_specs", {"Master": 1, "Worker": 1}),
        constants.TFJOB_KIND: ("tensorflow", models.KubeflowOrgV1TFJob, models.KubeflowOrgV1TFJobSpec, "tf_replica_specs", {"Chief": 1, "PS": 1, "Worker": 1}),
        constants.XGBOOSTJOB_KIND: ("xgboost", models.KubeflowOrgV1XGBoostJob, models.KubeflowOrgV1XGBoostJobSpec, "xgb_replica_specs", {"Master": 1, "Worker": 1}),
        constants.PADDLEJOB_KIND: ("paddle", models.KubeflowOrgV1PaddleJob, models.KubeflowOrgV1PaddleJobSpec, "paddle_replica_specs", {"Worker": 2}),
        constants.JAXJOB_KIND: ("jax", models.KubeflowOrgV1JAXJob, models.KubeflowOrgV1JAXJobSpec, "jax_replica_specs", {"Worker": 2}),
        constants.MPIJOB_KIND: ("mpi", models.KubeflowOrgV1MPIJob, models.KubeflowOrgV1MPIJobSpec, "mpi_replica_specs", {"Launcher": 1, "Worker": 1}),
    }
    for kind, (container, job, spec, field, replicas) in kinds.items():
        def template():
            main = kubernetes.V1Container(name=container, image="i", command=["sh", "-c", "env | sort; sleep 0.5"])
            return kubernetes.V1PodTemplateSpec(
                metadata=kubernetes.V1ObjectMeta(annotations={"sidecar.istio.io/inject": "false"}), spec=kubernetes.V1PodSpec(containers=[main]))

        specs = {r: models.KubeflowOrgV1ReplicaSpec(replicas=n, restart_policy="Never", template=template()) for r, n in replicas.items()}
        client.create_job(job(
            api_version=constants.API_VERSION, kind=kind, metadata=kubernetes.V1ObjectMeta(name=container),
            spec=spec(run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"), **{field: specs})))
    for kind, (container, *_, replicas) in kinds.items():
        client.wait_for_job_conditions(container, job_kind=kind, wait_timeout=180, polling_interval=1)
        assert [j.metadata.name for j in client.list_jobs(job_kind=kind) if j.metadata.name == container]
        assert client.get_job(container, job_kind=kind).status.replica_statuses
        assert len(client.get_job_pods(container)) == sum(replicas.values())


def changed_and_deleted():
    """A job that waits, is told to go on, and is deleted."""
    job = client.get_job("pytorch", job_kind=constants.PYTORCHJOB_KIND)
    fresh = models.KubeflowOrgV1PyTorchJob(
        api_version=job.api_version, kind=job.kind, metadata=kubernetes.V1ObjectMeta(name="waits"), spec=job.spec)
    fresh.spec.run_policy.suspend = True
    client.create_job(fresh)
    eventually(lambda: any(c.type == "Suspended" and c.status == "True" for c in client.get_job_conditions("waits")))
    assert client.get_job_pods("waits") == []
    fresh.spec.run_policy.suspend = False
    client.update_job(fresh, "waits")
    client.wait_for_job_conditions("waits", wait_timeout=180, polling_interval=1)
    fresh.metadata.name, fresh.spec.run_policy.managed_by = "other", "kueue.x-k8s.io/other-controller"
    refused(RuntimeError, client.create_job, fresh)
    client.delete_job("waits")
    eventually(lambda: "waits" not in [j.metadata.name for j in client.list_jobs()] and not client.get_job_pods("waits"))
    refused(RuntimeError, client.get_job, "waits")


from_function()
of_each_kind()
changed_and_deleted()
# train needs packages of Hugging Face here: train_client.py calls it.
missing = client.never_called()
assert missing == ["train"], f"methods that were not called: {missing}"
