# SPDX-License-Identifier: Apache-2.0
"""Calls every method of TrainerClient, from the unmodified kubeflow SDK."""

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import BuiltinTrainer, CustomTrainer, DataFormat, HuggingFaceDatasetInitializer, Initializer, LoraConfig, TorchTuneConfig, TorchTuneInstructDataset, TrainerClient
from kubeflow.trainer.options import kubernetes as options
from kubernetes import client as kubernetes

from calls import Recorder, connect, eventually, refused

kubeconfig = connect()
core = kubernetes.CoreV1Api()
client = Recorder(TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace="default")))


def meet(greeting):
    """The first node tells the others, which find it by the name that JAX would use."""
    import os
    import socket
    import time

    from kubeflow.trainer import update_trainjob_status

    host, port = os.environ["JAX_COORDINATOR_ADDRESS"].split(":")
    rank, count = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
    if rank == 0:
        with socket.create_server(("", int(port))) as server:
            for _ in range(count - 1):
                peer, _ = server.accept()
                peer.sendall(greeting.encode())
                peer.close()
        # It gives the server five seconds, which a busy machine may exceed. Peers that
        # have finished would leave a restarted first node waiting for ever.
        deadline = time.monotonic() + 60
        while not update_trainjob_status(progress_percent=42, estimated_remaining_seconds=7, metrics={"loss": 0.125, "step": 3}):
            assert time.monotonic() < deadline, "the status is refused"
            time.sleep(0.5)
        print(f"node {rank} of {count} told the others: {os.environ['MORE']}")
        return
    deadline = time.monotonic() + 100
    while True:
        try:
            with socket.create_connection((host, int(port))) as peer:
                print(f"node {rank} of {count} hears {peer.recv(100).decode()}")
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def fail():
    raise SystemExit(3)


def wait():
    import time

    time.sleep(600)


runtimes = {r.name: r for r in client.list_runtimes()}
assert {"torch-distributed", "jax-distributed", "xgboost-distributed", "tensorflow-distributed", "deepspeed-distributed"} <= set(runtimes), runtimes
runtime = client.get_runtime("jax-distributed")
assert (runtime.trainer.framework, runtime.trainer.num_nodes) == ("jax", 1), runtime
assert "torchrun" in client.get_runtime("torch-distributed").trainer.command[-1]
refused(RuntimeError, client.get_runtime, "nothing")
client.get_runtime_packages(runtime)

assert client.list_jobs() == []
patch = options.RuntimePatch(
    training_runtime_spec=options.TrainingRuntimeSpecPatch(template=options.JobSetTemplatePatch(spec=options.JobSetSpecPatch(
        replicated_jobs=[options.ReplicatedJobPatch(name="node", template=options.JobTemplatePatch(spec=options.JobSpecPatch(
            template=options.PodTemplatePatch(spec=options.PodSpecPatch(tolerations=[{"key": "k", "operator": "Exists"}])))))]))))
name = client.train(
    runtime="jax-distributed",
    trainer=CustomTrainer(func=meet, func_args={"greeting": "good day"}, num_nodes=3, resources_per_node={"cpu": "100m"}, env={"MORE": "is more"}),
    options=[options.Labels({"team": "vision"}), options.Annotations({"note": "mine"}), patch],
)
seen = []
job = client.wait_for_job_status(name, polling_interval=1, timeout=120, callbacks=[lambda j: seen.append(j.status)])
assert job.status == "Complete" and job.num_nodes == 3 and seen[-1] == "Complete", (job, seen)
assert sorted(s.name for s in job.steps) == ["node-0", "node-1", "node-2"], job.steps
# The SDK logs each attempt at the status that timed out, before the last line.
assert list(client.get_job_logs(name))[-1:] == ["node 0 of 3 told the others: is more"], list(client.get_job_logs(name))
assert list(client.get_job_logs(name, step="node-2")) == ["node 2 of 3 hears good day"]
assert "node 1 of 3 hears good day" in list(client.get_job_logs(name, step="node-1", follow=True))
assert isinstance(client.get_job_events(name), list)
pod = core.read_namespaced_pod(job.steps[0].pod_name, "default")
assert any(t.key == "k" for t in pod.spec.tolerations), pod.spec.tolerations
assert client.get_job(name).name == name
custom = kubernetes.CustomObjectsApi()
told = custom.get_namespaced_custom_object("trainer.kubeflow.org", "v1alpha1", "default", "trainjobs", name)["status"]["trainerStatus"]
assert told.pop("lastUpdatedTime") and told == {
    "progressPercentage": 42, "estimatedRemainingSeconds": 7, "metrics": [{"name": "loss", "value": "0.125"}, {"name": "step", "value": "3"}]}, told
assert [j.name for j in client.list_jobs(runtime=runtime)] == [name]
assert client.list_jobs(runtime=runtimes["torch-distributed"]) == []

# A runtime of the namespace, which does not try again what has failed.
strict = custom.get_cluster_custom_object("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "jax-distributed")
strict["kind"], strict["metadata"] = "TrainingRuntime", {"name": "strict", "labels": strict["metadata"]["labels"]}
strict["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
custom.create_namespaced_custom_object("trainer.kubeflow.org", "v1alpha1", "default", "trainingruntimes", strict)
assert client.get_runtime("strict").kind.value == "TrainingRuntime"
failing = client.train(runtime="strict", trainer=CustomTrainer(func=fail))
refused(RuntimeError, client.wait_for_job_status, failing, polling_interval=1, timeout=120)
assert client.get_job(failing).status == "Failed"

late = client.train(runtime=runtime, trainer=CustomTrainer(func=wait), options=[options.ActiveDeadlineSeconds(15)])
client.wait_for_job_status(late, status={"Running"}, polling_interval=1, timeout=120)
client.wait_for_job_status(late, status={"Failed"}, polling_interval=1, timeout=120)

# torchtune, whose command is made of the arguments that the SDK makes of the configuration. Nothing is fetched.
nowhere = [options.ReplicatedJobPatch(name=each, template=options.JobTemplatePatch(spec=options.JobSpecPatch(template=options.PodTemplatePatch(
    spec=options.PodSpecPatch(node_selector={"nowhere": "true"}))))) for each in ("dataset-initializer", "model-initializer")]
tuning = client.train(
    runtime="torchtune-llama3.2-1b",
    initializer=Initializer(dataset=HuggingFaceDatasetInitializer(storage_uri="hf://tatsu-lab/alpaca/data", ignore_patterns=["*.md"])),
    trainer=BuiltinTrainer(config=TorchTuneConfig(
        batch_size=8, epochs=2, peft_config=LoraConfig(lora_rank=4), resources_per_node={"gpu": 1},
        dataset_preprocess_config=TorchTuneInstructDataset(source=DataFormat.PARQUET, split="train[:10%]"))),
    options=[options.RuntimePatch(training_runtime_spec=options.TrainingRuntimeSpecPatch(
        template=options.JobSetTemplatePatch(spec=options.JobSetSpecPatch(replicated_jobs=nowhere))))],
)
made = eventually(lambda: custom.get_namespaced_custom_object("jobset.x-k8s.io", "v1alpha2", "default", "jobsets", tuning))
node = next(r for r in made["spec"]["replicatedJobs"] if r["name"] == "node")["template"]["spec"]["template"]["spec"]["containers"][0]
assert node["command"] == [
    "tune", "run", "lora_finetune_single_device", "--config", "llama3_2/1B_lora_single_device",
    "output_dir=/workspace/output", "tokenizer.path=/workspace/model/original/tokenizer.model", "checkpointer.checkpoint_dir=/workspace/model"], node
assert node["args"][:2] == ["batch_size=8", "epochs=2"] and "dataset.data_dir=/workspace/dataset/data" in node["args"] and "model.lora_rank=4" in node["args"], node
refused(RuntimeError, client.train, runtime="torchtune-llama3.2-1b", trainer=BuiltinTrainer(config=TorchTuneConfig(num_nodes=2)))

for each in (name, failing, late, tuning):
    client.delete_job(each)
eventually(lambda: client.list_jobs() == [])
eventually(lambda: core.list_namespaced_pod("default", label_selector="jobset.sigs.k8s.io/jobset-name").items == [])
refused(RuntimeError, client.delete_job, name)
refused(RuntimeError, client.get_job, name)

assert client.never_called() == [], client.never_called()
