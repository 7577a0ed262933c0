# SPDX-License-Identifier: Apache-2.0
"""Minimizes a parabola, and writes its progress for TensorBoard."""

import argparse

from tensorboardX import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--logs", required=True)
args = parser.parse_args()

x = 0.0
with SummaryWriter(args.logs + "/train") as train, SummaryWriter(args.logs + "/test") as test:
    for step in range(20):
        x -= args.lr * 2 * (x - 1)
        train.add_scalar("loss", abs(x - 1) / 2, step)
        test.add_scalar("loss", abs(x - 1), step)
