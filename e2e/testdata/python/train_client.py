# SPDX-License-Identifier: Apache-2.0
"""TrainingClient.train and KatibClient.tune with a language model, from the unmodified SDKs kubeflow-training and kubeflow-katib."""

import os

import transformers
from kubeflow import katib
from kubeflow.storage_initializer.hugging_face import HuggingFaceDatasetParams, HuggingFaceModelParams, HuggingFaceTrainerParams
from kubeflow.training import TrainingClient
from peft import LoraConfig

from calls import refused

training = TrainingClient(config_file=os.environ["KUBECONFIG"], namespace="default")
tuning = katib.KatibClient(config_file=os.environ["KUBECONFIG"], namespace="default")


def parts(rate, rank):
    """What both SDKs are told: which model, which data, and how to train."""
    return dict(
        model_provider_parameters=HuggingFaceModelParams(
            model_uri="hf://acme/reader", transformer_type=transformers.AutoModelForSequenceClassification, num_labels=10),
        dataset_provider_parameters=HuggingFaceDatasetParams(repo_id="acme/digits", split="train"),
        trainer_parameters=HuggingFaceTrainerParams(
            training_parameters=transformers.TrainingArguments(
                output_dir="out", num_train_epochs=8, learning_rate=rate, per_device_train_batch_size=32, save_strategy="no"),
            lora_config=LoraConfig(r=rank, lora_alpha=8, lora_dropout=0.1, bias="none")),
        storage_config={"size": "1Gi", "access_modes": ["ReadWriteOnce"]},
    )


def trained():
    """A model that is trained by two workers, on a volume to which the master has brought it."""
    more = dict(
        name="trained", num_workers=2, num_procs_per_worker=1, resources_per_worker={"cpu": "500m", "memory": "1Gi"},
        init_env_vars={"SAYS": "the first"}, env_vars={"SAYS": "the second"})
    training.train(**more, **parts(0.05, 8))
    job = training.wait_for_job_conditions("trained", wait_timeout=180, polling_interval=1)
    assert training.is_job_succeeded(job=job)
    claim = training.core_api.read_namespaced_persistent_volume_claim("trained", "default")
    assert claim.status.phase == "Bound" and claim.spec.resources.requests["storage"] == "1Gi", claim
    pods = {p.metadata.name: p for p in training.get_job_pods("trained")}
    assert set(pods) == {"trained-master-0", "trained-worker-0"}, set(pods)
    assert [c.name for c in pods["trained-master-0"].spec.init_containers] == ["storage-initializer"]
    assert pods["trained-worker-0"].spec.containers[0].resources.limits == {"cpu": "500m", "memory": "1Gi"}
    brought = training.core_api.read_namespaced_pod_log("trained-master-0", "default", container="storage-initializer")
    assert "hf://acme/reader as AutoModelForSequenceClassification and train of acme/digits are there, says the first" in brought, brought
    logs, _ = training.get_job_logs("trained", is_master=False)
    for rank, name in enumerate(("trained-master-0", "trained-worker-0")):
        line = next(line for line in logs[name].splitlines() if line.startswith(f"rank {rank} of 2"))
        assert line.endswith("with rank 8, says the second"), line
        accuracy = float(logs[name].split("'eval_accuracy': ")[1].split("}")[0])
        assert accuracy > 0.85, logs
    refused(RuntimeError, training.train, **more, **parts(0.05, 8))  # the claim may be there, the job not
    training.delete_job("trained")


def tuned():
    """How a model is trained is searched for."""
    tuning.tune(
        name="tuned", objective_type="maximize", objective_metric_name="eval_accuracy", max_trial_count=2, parallel_trial_count=2,
        resources_per_trial=katib.TrainerResources(num_workers=2, num_procs_per_worker=1, resources_per_worker={"cpu": "500m", "memory": "1Gi"}),
        **parts(katib.search.double(min=0.03, max=0.06), katib.search.int(min=6, max=10)))
    tuning.wait_for_experiment_condition("tuned", timeout=180, polling_interval=1)
    best = tuning.get_optimal_hyperparameters("tuned")
    assert {a.name for a in best.parameter_assignments} == {"learning_rate", "r"}, best
    assert float(best.observation.metrics[0].max) > 0.85, best
    tuning.delete_experiment("tuned")


trained()
tuned()
