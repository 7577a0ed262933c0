# SPDX-License-Identifier: Apache-2.0
"""Stands in for the training operator's trainer of Hugging Face's models.

It takes the same options, under torchrun. The weights that the storage initializer has brought stay as they
are; what is trained, by all processes together, is a correction of low rank.
"""

import argparse
import json
import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
for option in ("model_uri", "transformer_type", "model_dir", "dataset_dir"):
    parser.add_argument(f"--{option}", required=True)
parser.add_argument("--num_labels", required=True, type=int)
parser.add_argument("--lora_config", required=True, type=json.loads)
parser.add_argument("--training_parameters", required=True, type=json.loads)
args = parser.parse_args()
training = args.training_parameters  # numbers may be text, when they were searched for

os.environ["DIGITS"] = os.path.join(args.dataset_dir, "digits.csv")
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/training"))
import digits

distributed.init_process_group("gloo")
torch.manual_seed(1)
torch.set_num_threads(1)
pixels, labels, test_pixels, test_labels = (torch.from_numpy(array) for array in digits.load())
rows = TensorDataset(pixels.float(), labels)
part = DistributedSampler(rows)
batches = DataLoader(rows, batch_size=int(training["per_device_train_batch_size"]), sampler=part)

frozen = torch.load(os.path.join(args.model_dir, "weights.pt"))
rank = int(args.lora_config["r"])
correction = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, rank, bias=False), nn.Linear(rank, args.num_labels, bias=False)))
optimizer = torch.optim.SGD(correction.parameters(), lr=float(training["learning_rate"]), momentum=0.9)
for epoch in range(int(training["num_train_epochs"])):
    part.set_epoch(epoch)
    for batch, wanted in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(batch @ frozen + correction(batch), wanted).backward()
        optimizer.step()
with torch.no_grad():
    test_pixels = test_pixels.float()
    accuracy = ((test_pixels @ frozen + correction(test_pixels)).argmax(dim=1) == test_labels).float().mean().item()
print({"eval_accuracy": round(accuracy, 4)}, flush=True)
print(f"rank {distributed.get_rank()} of {distributed.get_world_size()} with rank {rank}, says {os.environ.get('SAYS')}", flush=True)
distributed.destroy_process_group()
