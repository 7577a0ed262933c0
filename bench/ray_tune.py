# SPDX-License-Identifier: Apache-2.0
"""The program of bench/program as trials of Ray Tune.

arguments: the trials, and how many run at a time. Prints trials a second, and the
processor time of all processes a trial, in ms.
"""

import glob
import logging
import os
import sys
import time

import ray
from ray import tune


def train(config):
    for step in range(10):
        time.sleep(0.01)
        tune.report({"step": step, "loss": config["x"] + 9 - step})


def used():
    """Returns the processor time of this process and all below it, in seconds."""
    parents, times = {}, {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(path).read().rpartition(") ")[2].split()
        except OSError:
            continue
        pid = int(path.split("/")[2])
        parents[pid], times[pid] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in times:
        at = pid
        while at in parents and at != os.getpid():
            at = parents[at]
        total += times[pid] if at == os.getpid() else 0
    return total


trials, parallel = int(sys.argv[1]), int(sys.argv[2])
ray.init(num_cpus=parallel, include_dashboard=False, logging_level=logging.ERROR)
began = time.monotonic()
results = tune.Tuner(
    train,
    param_space={"x": tune.uniform(0, 1)},
    tune_config=tune.TuneConfig(num_samples=trials, max_concurrent_trials=parallel, metric="loss", mode="min", reuse_actors=True),
    run_config=tune.RunConfig(verbose=0),
).fit()
took = time.monotonic() - began
assert len(results) == trials and results.num_errors == 0, results
print(trials / took, used() * 1000 / trials)
