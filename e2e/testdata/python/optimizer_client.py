# SPDX-License-Identifier: Apache-2.0
"""Calls every method of OptimizerClient, from the unmodified kubeflow SDK.

It makes Katib's experiments with TrainJobs as trials.
"""

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.optimizer import GridSearch, Objective, OptimizerClient, RandomSearch, Search, TrialConfig
from kubeflow.trainer import CustomTrainer, TrainerClient, TrainJobTemplate
from kubernetes import client as kubernetes

from calls import Recorder, connect, eventually, refused

kubeconfig = connect()
api = kubernetes.CustomObjectsApi()
backend = KubernetesBackendConfig(config_file=kubeconfig, namespace="default")
client = Recorder(OptimizerClient(backend))
experiments = ("kubeflow.org", "v1beta1", "default", "experiments")


def train(lr, optimizer):
    import os

    loss = abs(float(lr) - 0.03) + (0 if optimizer == "adam" else 1)
    print(f"node {os.environ['JAX_PROCESS_ID']} of {os.environ['JAX_NUM_PROCESSES']} is a trial")
    print(f"loss={loss if os.environ['JAX_PROCESS_ID'] == '0' else -1}")
    print(f"accuracy={1 - loss / 2}")


runtime = TrainerClient(backend).get_runtime("jax-distributed")


assert client.list_jobs() == []
template = TrainJobTemplate(runtime=runtime, trainer=CustomTrainer(func=train, num_nodes=2))
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

seen = []
# The SDK looks for the TrainJob of each trial, and fails for one that is just about to be made.
job = eventually(lambda: client.wait_for_job_status(names[1], polling_interval=1, timeout=180, callbacks=[lambda j: seen.append(j.status)]), within=180)
assert job.status == "Complete" and len(job.trials) == 4 and seen[-1] == "Complete", (job, seen)
assert {t.trainjob.name for t in job.trials} == {t.name for t in job.trials}, job.trials
assert all(t.trainjob.status == "Complete" and t.trainjob.num_nodes == 2 for t in job.trials), job.trials
best = client.get_best_results(names[1])
loss = next(m for m in best.metrics if m.name == "loss")
assert best.parameters == {"lr": "1", "optimizer": "adam"} and loss.min == loss.max == loss.latest == "0.97", best
lines = list(client.get_job_logs(names[1]))
assert "node 0 of 2 is a trial" in lines and "loss=0.97" in lines, lines
trial = job.trials[0].name
assert "node 0 of 2 is a trial" in list(client.get_job_logs(names[1], trial_name=trial, follow=True))
assert isinstance(client.get_job_events(names[1]), list)
assert client.get_job(names[1]).name == names[1]
assert eventually(lambda: {j.name for j in client.list_jobs()} == set(names))

for name in names:
    client.delete_job(name)
eventually(lambda: client.list_jobs() == [])
refused(RuntimeError, client.delete_job, names[0])
refused(RuntimeError, client.get_job, "nothing")

assert client.never_called() == [], client.never_called()
