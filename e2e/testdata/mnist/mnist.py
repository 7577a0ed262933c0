# SPDX-License-Identifier: Apache-2.0
"""Stands in for the training program of Katib's examples.

It takes the same options and reports in the same forms, and its loss depends
on the learning rate and the momentum, but it learns nothing.
"""

import argparse
import datetime
import json
import time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--log-path", default="")
parser.add_argument("--logger", default="standard", choices=["standard", "hypertune"])
args = parser.parse_args()


def lines():
    reports = max(1, 320 // args.batch_size)  # a smaller batch means more of them
    for step in range(args.epochs * reports):
        time.sleep(0.1)
        epoch = step // reports
        loss = abs(args.lr - 0.03) + abs(args.momentum - 0.7) + 0.1 / (step + 1)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        if args.logger == "hypertune":
            for name, value in (("loss", loss), ("accuracy", 1 - loss)):
                yield json.dumps({name: str(value), "timestamp": now, "epoch": epoch})
        elif args.log_path:
            yield f"{now} INFO     {{metricName: loss, metricValue: {loss:.4f}}}"
            yield f"{now} INFO     {{metricName: accuracy, metricValue: {1 - loss:.4f}}}"
        else:
            yield f"{now} INFO     Train Epoch: {epoch} loss={loss:.4f} accuracy={1 - loss:.4f}"


if args.log_path:
    with open(args.log_path, "a") as out:
        for line in lines():
            print(line, file=out, flush=True)
else:
    for line in lines():
        print(line, flush=True)
