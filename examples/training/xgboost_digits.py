# SPDX-License-Identifier: Apache-2.0
"""Train boosted trees on digits, each process with its shard of the rows.

The master, rank 0, runs XGBoost's tracker, where all meet; MASTER_ADDR, MASTER_PORT, WORLD_SIZE
and RANK are set in an XGBoostJob. Trees are the same in every process, so any may report.
"""

import argparse
import os

import numpy
import xgboost
from xgboost.tracker import RabitTracker

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=20)
parser.add_argument("--eta", type=float, default=0.3)
args = parser.parse_args()

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
port = int(os.environ["MASTER_PORT"])

tracker = None
if rank == 0:
    tracker = RabitTracker(n_workers=world, host_ip="0.0.0.0", port=port)
    tracker.start()

settings = {
    "dmlc_communicator": "rabit", "dmlc_tracker_uri": os.environ["MASTER_ADDR"], "dmlc_tracker_port": port,
    "dmlc_task_id": str(rank), "dmlc_retry": 30,
}
with xgboost.collective.CommunicatorContext(**settings):
    pixels, labels, test_pixels, test_labels = digits.load()
    pixels, labels = digits.shard(rank, world, pixels, labels)
    model = xgboost.train(
        {"objective": "multi:softmax", "num_class": 10, "max_depth": 4, "eta": args.eta, "nthread": 1, "tree_method": "hist"},
        xgboost.DMatrix(pixels, labels), num_boost_round=args.rounds)
    accuracy = numpy.mean(model.predict(xgboost.DMatrix(test_pixels)) == test_labels)
    print(f"rank {rank} of {world} rows={len(labels)} accuracy={accuracy:.4f}", flush=True)
if tracker is not None:
    tracker.wait_for(timeout=60)
