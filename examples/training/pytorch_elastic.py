# SPDX-License-Identifier: Apache-2.0
"""Train a small network on digits with PyTorch on a changing number of workers.

torchrun restarts the program in every worker when one joins or leaves; it resumes from the checkpoint that
rank 0 writes after each epoch. A batch is shared by all workers, so a step updates the
model identically whatever their number.
"""

import argparse
import os
import time

import torch
from torch import distributed, nn

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch", type=int, default=64, help="of all workers together")
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--checkpoint", default=os.path.join(os.environ.get("CHECKPOINT_DIR", ""), "digits.pt"), metavar="FILE")
parser.add_argument("--pause", type=float, default=0.0, help="seconds that an epoch takes besides, as if the network were larger")
parser.add_argument("--pause-until", default="", metavar="FILE", help="pause only until this file exists")
args = parser.parse_args()

distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
torch.set_num_threads(1)
torch.manual_seed(1)
pixels, labels, test_pixels, test_labels = (torch.from_numpy(array) for array in digits.load())
network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
model = nn.parallel.DistributedDataParallel(network)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
first = 0
if os.path.exists(args.checkpoint):
    first, weights, moments = torch.load(args.checkpoint)
    network.load_state_dict(weights)
    optimizer.load_state_dict(moments)
print(f"rank {rank} of {world} begins at epoch {first + 1}", flush=True)

for epoch in range(first, args.epochs):
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
    for batch in order.split(args.batch):
        mine = batch[rank::world]
        loss = nn.functional.cross_entropy(model(pixels[mine].float()), labels[mine], reduction="sum")
        optimizer.zero_grad()
        (loss * world / len(batch)).backward()  # DistributedDataParallel averages over the workers
        optimizer.step()
    if rank == 0:
        torch.save((epoch + 1, network.state_dict(), optimizer.state_dict()), args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)
    print(f"epoch {epoch + 1} workers={world}", flush=True)
    end = time.monotonic() + args.pause
    while time.monotonic() < end and not os.path.exists(args.pause_until):
        time.sleep(0.05)

with torch.no_grad():
    accuracy = (network(test_pixels.float()).argmax(dim=1) == test_labels).float().mean().item()
print(f"rank {rank} of {world} accuracy={accuracy:.4f}", flush=True)
distributed.destroy_process_group()
