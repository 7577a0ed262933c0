#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train boosted trees to recognize handwritten digits, on several nodes that each see a shard of the data.

The runtime xgboost-distributed gives each node its rank and the address of the tracker, which
runs on the first node, in DMLC_*. Searched parameters, if any, are in KUBEFLOW_TRAINER_OPT_*.
"""

import argparse
import csv
import os
import threading

import numpy
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker


def searched(name, default):
    """A parameter's value, as chosen by an OptimizationJob."""
    return type(default)(os.environ.get("KUBEFLOW_TRAINER_OPT_" + name, default))


def read(path):
    with open(path, newline="") as file:
        rows = numpy.array([[float(pixel) for pixel in row] for row in csv.reader(file)])
    return rows[:, :-1], rows[:, -1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "quickstart", "digits.csv"))
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()

    rank, nodes = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
    host, port = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])
    if rank == 0:
        tracker = RabitTracker(host_ip="0.0.0.0", port=port, n_workers=nodes)
        tracker.start()
        threading.Thread(target=tracker.wait_for, daemon=True).start()

    features, digits = read(options.data)
    test = numpy.arange(len(digits)) % 5 == 0
    mine = ~test & (numpy.arange(len(digits)) % nodes == rank)
    with collective.CommunicatorContext(dmlc_tracker_uri=host, dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_retry=10):
        data = xgboost.DMatrix(features[mine], digits[mine])
        parameters = {
            "objective": "multi:softmax", "num_class": 10, "nthread": 1, "tree_method": "hist",
            "max_depth": searched("MAX_DEPTH", 5), "eta": searched("ETA", 0.4),
        }
        model = xgboost.train(parameters, data, num_boost_round=options.rounds)
        print(f"node {collective.get_rank()} of {collective.get_world_size()} has seen {mine.sum()} digits", flush=True)
    if rank == 0:  # the model is the same on all nodes
        accuracy = (model.predict(xgboost.DMatrix(features[test])) == digits[test]).mean()
        print(f"accuracy={accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
