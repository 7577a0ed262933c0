# SPDX-License-Identifier: Apache-2.0
"""Every method of KatibClient, from the unmodified kubeflow-katib SDK, against the cluster in KUBECONFIG, or that of this Pod.

KATIB_DB_MANAGER is the address of the DB manager as this program reaches it.
"""

import os

from kubeflow import katib
from kubeflow.katib import models
from kubernetes import client as kubernetes

from calls import Recorder, eventually, refused

client = Recorder(katib.KatibClient(config_file=os.environ.get("KUBECONFIG"), namespace="default"))
manager = os.environ["KATIB_DB_MANAGER"]


def tune():
    """An objective in Python, from its definition to the best parameters."""

    def objective(parameters):
        import os
        import time

        assert parameters["epochs"] == 3 and os.environ["GREETING"] == "hello"
        for epoch in range(parameters["epochs"]):
            loss = (float(parameters["lr"]) - 0.3) ** 2 + int(parameters["layers"]) * 0.1 + (parameters["optimizer"] == "sgd")
            print(f"epoch={epoch} loss={loss + 1 / (epoch + 1):.6f} accuracy={1 - loss / 10:.6f}", flush=True)
            time.sleep(0.2)

    client.tune(
        name="tuned",
        objective=objective,
        parameters={
            "lr": katib.search.double(min=0.1, max=0.5, step=0.01),
            "layers": katib.search.int(min=1, max=3),
            "optimizer": katib.search.categorical(["sgd", "adam"]),
            "epochs": 3,
        },
        algorithm_name="tpe",
        algorithm_settings={"random_state": 1},
        objective_metric_name="loss",
        additional_metric_names=["accuracy"],
        objective_type="minimize",
        objective_goal=0.001,
        max_trial_count=4,
        parallel_trial_count=2,
        max_failed_trial_count=1,
        resources_per_trial={"cpu": "100m", "memory": "128Mi"},
        env_per_trial={"GREETING": "hello"},
        retain_trials=True,
        trial_active_deadline_seconds=100,
    )
    refused(Exception, client.tune, name="tuned", objective=objective, parameters={"lr": katib.search.double(0, 1)}, objective_metric_name="loss")
    experiment = client.wait_for_experiment_condition("tuned", timeout=180, polling_interval=1)
    assert experiment.status.trials_succeeded == 4 and experiment.status.completion_time
    assert client.is_experiment_created("tuned") and client.is_experiment_succeeded("tuned")
    assert not (client.is_experiment_running("tuned") or client.is_experiment_restarting("tuned") or client.is_experiment_failed("tuned"))
    assert [c.type for c in client.get_experiment_conditions("tuned")] == ["Created", "Running", "Succeeded"]

    best = client.get_optimal_hyperparameters("tuned")
    assert {a.name for a in best.parameter_assignments} == {"lr", "layers", "optimizer"}
    details = client.get_success_trial_details("tuned")
    losses = {d["name"]: float(next(m.min for m in d["metrics"] if m.name == "loss")) for d in details}
    assert len(losses) == 4 and best.best_trial_name == min(losses, key=losses.get), losses
    assert {m.name for m in best.observation.metrics} == {"loss", "accuracy"}
    return best.best_trial_name


def look(trial):
    """What there is to read of an experiment and a trial."""
    assert client.get_experiment("tuned").spec.trial_template.primary_container_name == "training-container"
    assert [e.metadata.name for e in client.list_experiments()] == ["tuned"]
    assert len(client.list_trials()) == len(client.list_trials("tuned")) == 4
    assert client.list_trials("nothing") == [] == client.list_experiments(namespace="kube-public")
    assert client.get_trial(trial).spec.objective.objective_metric_name == "loss"
    assert client.get_suggestion("tuned").status.suggestion_count == 4
    assert [s.metadata.name for s in client.list_suggestions()] == ["tuned"]
    for follow in (False, True):
        lines = list(client.get_job_logs("tuned", trial, follow=follow))
        assert [line.split()[0] for line in lines] == ["epoch=0", "epoch=1", "epoch=2"], lines
    refused(RuntimeError, client.get_job_logs, "tuned", "nothing")
    refused(RuntimeError, client.get_experiment, "nothing")
    refused(RuntimeError, client.get_trial, "nothing")
    refused(RuntimeError, client.get_suggestion, "nothing")


def job(command):
    """A trial that runs a command of the shell."""
    container = kubernetes.V1Container(name="main", image="busybox", command=["sh", "-c", command])
    pod = kubernetes.V1PodSpec(restart_policy="Never", containers=[container])
    return kubernetes.V1Job(api_version="batch/v1", kind="Job", spec=kubernetes.V1JobSpec(
        backoff_limit=0, template=kubernetes.V1PodTemplateSpec(spec=pod)))


def experiment(name, command, **spec):
    """An experiment of x from 0 to 1."""
    return models.V1beta1Experiment(
        api_version="kubeflow.org/v1beta1",
        kind="Experiment",
        metadata=models.V1ObjectMeta(**name),
        spec=models.V1beta1ExperimentSpec(
            objective=models.V1beta1ObjectiveSpec(type="minimize", objective_metric_name="loss"),
            algorithm=models.V1beta1AlgorithmSpec(algorithm_name="random"),
            parameters=[models.V1beta1ParameterSpec(
                name="x", parameter_type="double", feasible_space=models.V1beta1FeasibleSpace(min="0", max="1"))],
            trial_template=models.V1beta1TrialTemplate(
                primary_container_name="main",
                trial_parameters=[models.V1beta1TrialParameterSpec(name="x", reference="x")],
                trial_spec=job(command)),
            **spec))


def edit(name, **counts):
    """Edits the budget. The SDK sends back what it has read, which is refused if the status has changed meanwhile."""
    eventually(lambda: client.edit_experiment_budget(name, **counts) or True)


def budget():
    """An experiment that is given more trials, first while it runs and then when it has ended."""
    client.create_experiment(experiment({"name": "resumed"}, "echo loss=${trialParameters.x}; sleep 1",
                                        resume_policy="LongRunning", max_trial_count=2, parallel_trial_count=1))
    client.wait_for_experiment_condition("resumed", expected_condition="Created", timeout=180, polling_interval=1)
    client.wait_for_experiment_condition("resumed", expected_condition="Running", timeout=180, polling_interval=1)
    edit("resumed", max_trial_count=3, parallel_trial_count=3, max_failed_trial_count=2)
    ended = client.wait_for_experiment_condition("resumed", timeout=180, polling_interval=1)
    assert (ended.status.trials_succeeded, ended.spec.parallel_trial_count, ended.spec.max_failed_trial_count) == (3, 3, 2)
    edit("resumed", max_trial_count=5)
    eventually(lambda: client.get_experiment("resumed").status.trials_succeeded == 5)
    eventually(lambda: client.is_experiment_succeeded("resumed"))
    refused(RuntimeError, client.edit_experiment_budget, "resumed", max_trial_count=4)
    refused(RuntimeError, client.edit_experiment_budget, "tuned", max_trial_count=9)  # its resumePolicy is Never


def failure():
    """An experiment that fails, with a name that the server makes."""
    client.create_experiment(experiment({"generate_name": "broken-"}, "echo ${trialParameters.x}; exit 1",
                                        max_trial_count=3, parallel_trial_count=1, max_failed_trial_count=1))
    name = next(e.metadata.name for e in client.list_experiments() if e.metadata.name.startswith("broken-"))
    refused(RuntimeError, client.wait_for_experiment_condition, name, timeout=180, polling_interval=1)
    assert client.is_experiment_failed(name) and client.get_optimal_hyperparameters(name) is None
    refused(RuntimeError, client.create_experiment, experiment({"name": "UPPER"}, "echo ${trialParameters.x}"))
    client.delete_experiment(name)
    eventually(lambda: name not in [e.metadata.name for e in client.list_experiments()])


def push(trial):
    """Metrics that are read from the DB manager, and those that a trial pushes there.

    Its name leads Pods to it where they have hosts files of their own, which needs root.
    """

    def objective(parameters):
        from kubeflow import katib

        where = {"db_manager_address": parameters["manager"]} if parameters["manager"] else {}
        for step in range(3):
            katib.report_metrics({"loss": float(parameters["x"]) - step, "step": step}, **where)

    logs = client.get_trial_metrics(trial, db_manager_address=manager, timeout=20)
    assert [m.metric.name for m in logs].count("loss") == [m.metric.name for m in logs].count("accuracy") == 3, logs
    assert all(m.time_stamp and float(m.metric.value) > 0 for m in logs), logs
    client.tune(name="pushed", objective=objective, objective_type="minimize",
                parameters={"x": katib.search.double(0, 1), "manager": "" if os.getuid() == 0 else manager},
                objective_metric_name="loss", additional_metric_names=["step"], metrics_collector_config={"kind": "Push"},
                max_trial_count=2, parallel_trial_count=2)
    client.wait_for_experiment_condition("pushed", timeout=180, polling_interval=1)
    for details in client.get_success_trial_details("pushed"):
        metrics = {m.name: m for m in details["metrics"]}
        x = float(details["parameter_assignments"][0].value)
        assert abs(float(metrics["loss"].min) - (x - 2)) < 1e-9 and metrics["step"].max == "2", details


def delete():
    """Experiments go, with all that belongs to them."""
    for e in client.list_experiments():
        client.delete_experiment(e.metadata.name)
    eventually(lambda: client.list_experiments() == [] == client.list_trials())
    refused(RuntimeError, client.delete_experiment, "tuned")


best = tune()
look(best)
budget()
failure()
push(best)
delete()
missing = client.never_called()
assert not missing, f"these methods were not called: {missing}"
print("every method was called")
