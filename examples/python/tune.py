# SPDX-License-Identifier: Apache-2.0
"""Tunes gradient descent with Katib's Python SDK.

A trial is a call of train in its own process. It reports metrics by printing
name=value.
"""

import time

from kubeflow import katib


def train(parameters):
    rate, momentum = float(parameters["rate"]), float(parameters["momentum"])
    x, y, dx, dy = -1.0, 1.0, 0.0, 0.0
    for epoch in range(int(parameters["epochs"])):
        for _ in range(10):
            slope_x = -2 * (1 - x) - 40 * x * (y - x * x)  # the gradient of Rosenbrock's valley
            slope_y = 20 * (y - x * x)
            dx, dy = momentum * dx - rate * slope_x, momentum * dy - rate * slope_y
            x, y = max(-3, min(3, x + dx)), max(-3, min(3, y + dy))
        loss = (1 - x) ** 2 + 10 * (y - x * x) ** 2
        print(f"epoch={epoch} loss={loss:.6f}", flush=True)


client = katib.KatibClient(namespace="default")
name = f"valley-{int(time.time())}"
client.tune(
    name=name,
    objective=train,
    base_image="diwan.dev/host",  # this machine's Python: nothing is pulled
    parameters={
        "rate": katib.search.double(min=0.001, max=0.05),
        "momentum": katib.search.double(min=0.0, max=0.99),
        "epochs": 10,
    },
    objective_metric_name="loss",
    objective_type="minimize",
    algorithm_name="tpe",
    max_trial_count=12,
    parallel_trial_count=4,
    retain_trials=True,
)
client.wait_for_experiment_condition(name, polling_interval=2)
best = client.get_optimal_hyperparameters(name)
print("best:", {a.name: a.value for a in best.parameter_assignments})
for line in client.get_job_logs(name, best.best_trial_name):
    print(line)
