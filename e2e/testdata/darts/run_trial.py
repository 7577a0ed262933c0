# SPDX-License-Identifier: Apache-2.0
"""Stands in for the training program of Katib's examples of DARTS.

It reads the search space as that program does, and reports the first operation
everywhere, but it learns nothing.
"""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--algorithm-settings", required=True)
parser.add_argument("--search-space", required=True)
parser.add_argument("--num-layers", type=int, required=True)
args = parser.parse_args()

settings = json.loads(args.algorithm_settings.replace("'", '"'))
primitives = json.loads(args.search_space.replace("'", '"'))
nodes, epochs = int(settings["num_nodes"]), int(settings["num_epochs"])
assert settings["batch_size"] == 128 and args.num_layers >= 1

cell = [[(primitives[0], 0), (primitives[0], 1)] for _ in range(nodes)]
concat = f"range(2,{2 + nodes})"
for epoch in range(epochs):
    print(f"epoch {epoch + 1} of {epochs}", flush=True)
genotype = f"Genotype(normal={cell},normal_concat={concat},reduce={cell},reduce_concat={concat})"
print("Best-Genotype=" + genotype.replace(" ", ""))
