# SPDX-License-Identifier: Apache-2.0
"""PyTorchJobs that the unmodified SDKs kubeflow-training and kubeflow-katib make of functions, under torchrun."""

import os

from kubeflow import katib
from kubeflow.training import TrainingClient

training = TrainingClient(config_file=os.environ["KUBECONFIG"], namespace="default")
tuning = katib.KatibClient(config_file=os.environ["KUBECONFIG"], namespace="default")


def of_three():
    """A function as a job of three workers, who sum their ranks."""

    def train():
        import torch
        from torch import distributed

        distributed.init_process_group("gloo")
        total = torch.tensor([distributed.get_rank()])
        distributed.all_reduce(total)
        print(f"rank {distributed.get_rank()} of {distributed.get_world_size()}: the sum is {total.item()}")
        distributed.destroy_process_group()

    training.create_job(name="sum", train_func=train, num_workers=3, num_procs_per_worker=1)
    job = training.wait_for_job_conditions("sum", wait_timeout=180, polling_interval=1)
    assert training.is_job_succeeded(job=job)
    pods = training.get_job_pod_names("sum")
    assert sorted(pods) == ["sum-master-0", "sum-worker-0", "sum-worker-1"], pods
    logs, _ = training.get_job_logs("sum", is_master=False)
    assert {f"rank {rank} of 3: the sum is 3" for rank in range(3)} <= {line for log in logs.values() for line in log.splitlines()}, logs
    training.delete_job("sum")


def tuned():
    """A function whose trials are jobs of two workers, of which the master reports."""

    def objective(parameters):
        import torch
        from torch import distributed

        distributed.init_process_group("gloo")
        part = torch.tensor([float(parameters["x"]) * (1 + distributed.get_rank())])
        distributed.all_reduce(part)
        print(f"loss={part.item() if distributed.get_rank() == 0 else -1}", flush=True)
        distributed.destroy_process_group()

    tuning.tune(
        name="distributed", objective=objective, parameters={"x": katib.search.double(1, 2)}, base_image="docker.io/pytorch/pytorch",
        objective_type="minimize", objective_metric_name="loss", max_trial_count=2, parallel_trial_count=2, retain_trials=True,
        resources_per_trial=katib.TrainerResources(num_workers=2, num_procs_per_worker=1, resources_per_worker={"cpu": "100m"}))
    tuning.wait_for_experiment_condition("distributed", timeout=180, polling_interval=1)
    details = tuning.get_success_trial_details("distributed")
    assert len(details) == 2, details
    for trial in details:
        x, loss = float(trial["parameter_assignments"][0].value), trial["metrics"][0]
        assert abs(float(loss.latest) - 3 * x) < 1e-4 and loss.min == loss.max, trial
        assert "loss=" in "".join(tuning.get_job_logs("distributed", trial["name"]))
    tuning.delete_experiment("distributed")


of_three()
tuned()
