# SPDX-License-Identifier: Apache-2.0
"""Fits a curve to measured points, running the trials itself.

Start as many instances as you like, and kill any of them:

    diwan up &
    for i in 1 2 3 4; do python3 examples/ask-and-tell/tune.py & done
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from diwan.asktell import Experiment  # noqa: E402

POINTS = [(0, 2.1), (1, 1.35), (2, 0.98), (3, 0.63), (4, 0.47), (5, 0.30), (6, 0.22), (7, 0.13)]
SPEC = {
    "objective": {
        "type": "minimize",
        "objectiveMetricName": "error",
        "metricStrategies": [{"name": "error", "value": "latest"}],  # not the best: early errors cover only the first points
    },
    "algorithm": {"algorithmName": "tpe", "algorithmSettings": [{"name": "random_state", "value": "1"}]},
    "maxTrialCount": 60,
    "parallelTrialCount": 8,
    "parameters": [
        {"name": "height", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "10"}},
        {"name": "decay", "parameterType": "double", "feasibleSpace": {"min": "0.01", "max": "3"}},
    ],
    "trialTemplate": {"external": {"leaseSeconds": 3, "maxAttempts": 100}},
}

experiment = Experiment("curve", SPEC)
for trial in experiment.trials():
    with trial:
        p, total = trial.parameters, 0.0
        for n, (x, y) in enumerate(POINTS, start=1):
            total += (y - p["height"] * math.exp(-p["decay"] * x)) ** 2
            trial.report(error=total / n)
        trial.complete(error=total / len(POINTS))
best = experiment.get()["best"]
print(f"error {best['metrics']['error']:.4f} with {best['parameters']}")
