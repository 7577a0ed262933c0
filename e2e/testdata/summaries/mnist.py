# SPDX-License-Identifier: Apache-2.0
"""Stands in for the TensorFlow program of Katib's example of a TFJob: same options, same event files."""

import argparse
import json
import os

from tensorboardX import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--learning-rate", type=float, required=True)
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--log-path", required=True)
args = parser.parse_args()

assert len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]) == 2
with SummaryWriter(os.path.join(args.log_path, "test")) as writer:
    for step in range(args.epochs * 3):
        writer.add_scalar("accuracy", 1 - args.learning_rate - 1 / (args.batch_size + step), step)
