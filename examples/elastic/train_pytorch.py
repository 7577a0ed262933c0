# SPDX-License-Identifier: Apache-2.0
"""A small network on handwritten digits with PyTorch, with workers that come and go.

    diwan elastic agent --name w0 --founder w0 --gossip 127.0.0.1:7946 -- python3 train_pytorch.py

Along with the gradient it sums how often each picture has been used, so that at the end of each epoch it can
tell whether each was used exactly once.
"""

import argparse
import io
import json
import os
import sys
import time

import torch
from torch import nn

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "..", "python"), os.path.join(here, "..", "training")]

import digits  # noqa: E402
from diwan import elastic  # noqa: E402
from diwan.elastic import pytorch  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch", type=int, default=64, help="of all workers together")
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes besides, as if the network were larger")
parser.add_argument("--pause-while", default="", metavar="FILE", help="pause only while this file exists")
options = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(1)
pixels, labels, test_pixels, test_labels = (torch.from_numpy(array) for array in digits.load())
pixels, test_pixels = pixels.float(), test_pixels.float()
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
used = torch.zeros(len(labels))
ledger = elastic.Ledger(len(labels), options.batch, options.epochs, seed=1)


def save() -> bytes:
    data = io.BytesIO()
    torch.save((net.state_dict(), optimizer.state_dict(), used), data)
    return data.getvalue()


def load(data: bytes) -> None:
    weights, moments, counts = torch.load(io.BytesIO(data))
    net.load_state_dict(weights)
    optimizer.load_state_dict(moments)
    used.copy_(counts)


def on_view(group) -> None:
    pytorch.join(group)
    print(f"view={group.view.number} rank={group.rank} of={group.size} at={ledger.position} time={time.time():.3f}", flush=True)


def end_of_epoch(epoch: int) -> None:
    with torch.no_grad():
        loss = nn.functional.cross_entropy(net(pixels), labels).item()
        accuracy = (net(test_pixels).argmax(dim=1) == test_labels).float().mean().item()
    exact = bool((used == 1).all())
    print(f"epoch={epoch + 1} loss={loss:.6f} samples={int(used.sum())} once={json.dumps(exact)} accuracy={accuracy:.4f}", flush=True)
    used.zero_()


with elastic.Training(ledger, save, load, on_view) as training:
    for step in training:
        with step:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(pixels[step.samples]), labels[step.samples], reduction="sum") / step.count
            loss.backward()
            counts = torch.zeros(len(labels))
            counts[step.samples] = 1
            if not options.pause_while or os.path.exists(options.pause_while):
                time.sleep(options.pause)
            pytorch.all_reduce(step, [p.grad for p in net.parameters()] + [counts])
            optimizer.step()
            used += counts
            if step.cursor + step.count == len(labels):
                end_of_epoch(step.epoch)
