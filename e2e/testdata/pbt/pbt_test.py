# SPDX-License-Identifier: Apache-2.0
"""Stands in for the training program of Katib's example of pbt.

It goes on from its checkpoint if there is one, and gets better the faster the
closer its learning rate is to what is best at the moment: it rises and falls,
as in the example (Jaderberg et al., 2017, has such schedules).
"""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--checkpoint", required=True)
args = parser.parse_args()

path = os.path.join(args.checkpoint, "training.json")
accuracy = 0.0
if os.path.exists(path):
    with open(path) as file:
        accuracy = json.load(file)["accuracy"]
for _ in range(args.epochs):
    best = max(0.001, 0.02 * min(accuracy, 1 - accuracy))
    accuracy = min(1.0, accuracy + 0.01 * min(args.lr, best) / max(args.lr, best))
with open(path, "w") as file:
    json.dump({"accuracy": accuracy}, file)
print(f"Validation-accuracy={accuracy:.4f}")
