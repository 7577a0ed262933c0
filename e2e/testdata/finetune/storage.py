# SPDX-License-Identifier: Apache-2.0
"""Stands in for the training operator's storage initializer, which fetches a model and data from a hub.

It takes the same options. The model that it brings is a classifier that has learnt nothing, the data are digits.
"""

import argparse
import json
import os
import shutil

import torch

parser = argparse.ArgumentParser()
for part in ("model", "dataset"):
    parser.add_argument(f"--{part}_provider", required=True, choices=["hf"])
    parser.add_argument(f"--{part}_provider_parameters", required=True, type=json.loads)
args = parser.parse_args()

model, data = args.model_provider_parameters, args.dataset_provider_parameters
for directory in ("/workspace/model", "/workspace/dataset"):
    os.makedirs(directory, exist_ok=True)
torch.manual_seed(1)
torch.save(torch.randn(64, model["num_labels"]) / 100, "/workspace/model/weights.pt")
shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/quickstart/digits.csv"), "/workspace/dataset")
print(f"{model['model_uri']} as {model['transformer_type']} and {data['split']} of {data['repo_id']} are there, says {os.environ.get('SAYS')}")
