# SPDX-License-Identifier: Apache-2.0
"""Train a small network on digits with PyTorch's DistributedDataParallel, each process with its shard of the rows.

MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK are set in a PyTorchJob, and by torchrun. Gradients are
averaged over all processes in every step, so all have the same weights.
"""

import argparse

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--target", type=float, default=1.0, help="accuracy at which to end, before the last epoch")
args = parser.parse_args()

distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(1)
torch.set_num_threads(1)

pixels, labels, test_pixels, test_labels = (torch.from_numpy(array) for array in digits.load())
rows = TensorDataset(pixels.float(), labels)
part = DistributedSampler(rows)
batches = DataLoader(rows, batch_size=32, sampler=part)

model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
loss_of = nn.CrossEntropyLoss()
for epoch in range(args.epochs):
    part.set_epoch(epoch)
    for batch, wanted in batches:
        optimizer.zero_grad()
        loss = loss_of(model(batch), wanted)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(test_pixels.float()).argmax(dim=1) == test_labels).float().mean().item()
    print(f"epoch {epoch + 1} loss={loss.item():.4f} accuracy={accuracy:.4f}", flush=True)
    if accuracy >= args.target:
        break
print(f"rank {rank} of {world} has trained on {len(part)} rows an epoch", flush=True)
distributed.destroy_process_group()
