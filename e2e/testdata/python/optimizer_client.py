# SPDX-License-Identifier: Apache-2.0
"""What OptimizerClient, from the unmodified kubeflow SDK, can do where TrainJobs are not served.

It makes Katib's experiments with TrainJobs as trials. The methods that read
those TrainJobs have nothing to read yet.
"""

import os

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.optimizer import GridSearch, Objective, OptimizerClient, RandomSearch, Search, TrialConfig
from kubeflow.trainer import CustomTrainer, TrainJobTemplate
from kubeflow.trainer.constants import constants
from kubeflow.trainer.types import types
from kubernetes import client as kubernetes, config

from calls import Recorder, eventually, refused

config.load_kube_config(config_file=os.environ["KUBECONFIG"])
api = kubernetes.CustomObjectsApi()
client = Recorder(OptimizerClient(KubernetesBackendConfig(config_file=os.environ["KUBECONFIG"], namespace="default")))
experiments = ("kubeflow.org", "v1beta1", "default", "experiments")


def train(lr, optimizer):
    print(f"loss={float(lr)} {optimizer}")


def runtime():
    """A runtime such as the trainer's default one."""
    trainer = types.RuntimeTrainer(trainer_type=types.TrainerType.CUSTOM_TRAINER, framework="torch", image="pytorch/pytorch")
    trainer.set_command(constants.DEFAULT_COMMAND)
    return types.Runtime(name="torch-distributed", kind=types.RuntimeKind.CLUSTER_TRAINING_RUNTIME, trainer=trainer)


def succeeded_or_failed(name):
    """The condition by which an experiment has ended, once it has."""
    status = api.get_namespaced_custom_object(*experiments, name).get("status", {})
    return next((c["type"] for c in status.get("conditions", []) if c["type"] in ("Succeeded", "Failed") and c["status"] == "True"), None)


assert client.list_jobs() == []
template = TrainJobTemplate(runtime=runtime(), trainer=CustomTrainer(func=train))
search_space = {"lr": Search.loguniform(0.001, 0.1), "optimizer": Search.choice(["sgd", "adam"])}
names = [
    client.optimize(template, search_space=search_space, trial_config=TrialConfig(num_trials=2, max_failed_trials=1)),
    client.optimize(template, search_space={**search_space, "lr": Search.choice([1, 2])}, algorithm=GridSearch(),
                    trial_config=TrialConfig(num_trials=4, parallel_trials=2), objectives=[Objective(metric="loss"), Objective(metric="accuracy")]),
    client.optimize(template, search_space={"lr": Search.uniform(0, 1), "optimizer": Search.choice(["sgd"])},
                    algorithm=RandomSearch(random_state=3), objectives=[Objective(metric="accuracy", direction="maximize")]),
]
spec = api.get_namespaced_custom_object(*experiments, names[0])["spec"]
assert (spec["maxTrialCount"], spec["parallelTrialCount"], spec["objective"]["objectiveMetricName"]) == (2, 1, "loss"), spec
assert all("distribution" in p["feasibleSpace"] for p in spec["parameters"] if p["parameterType"] == "double"), spec

assert eventually(lambda: succeeded_or_failed(names[0])) == "Failed"
trials = api.list_namespaced_custom_object(*experiments[:3], "trials", label_selector=f"katib.kubeflow.org/experiment={names[0]}")["items"]
for trial in trials:
    reason = next(c["message"] for c in trial["status"]["conditions"] if c["type"] == "Failed")
    assert "TrainJob is not permitted" in reason, reason
assert client.get_best_results(names[0]) is None
for name in names:
    client.delete_job(name)
eventually(lambda: client.list_jobs() == [])
refused(RuntimeError, client.delete_job, names[0])
refused(RuntimeError, client.get_job, "nothing")

# Those need TrainJobs.
assert client.never_called() == ["get_job_events", "get_job_logs", "wait_for_job_status"], client.never_called()
