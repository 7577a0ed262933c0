# SPDX-License-Identifier: Apache-2.0
"""Train a softmax classifier on digits with Horovod, on a changing number of workers.

A surviving worker continues from the last commit; a new one gets the state from rank 0.
"""

import argparse
import time

import horovod.torch as hvd
import torch

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--batch", type=int, default=240, help="rows of all workers together in a step")
parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
args = parser.parse_args()

hvd.init()
torch.set_num_threads(1)
pixels, labels, test_pixels, test_labels = (torch.tensor(array) for array in digits.load())
pixels, test_pixels = pixels.float(), test_pixels.float()
model = torch.nn.Linear(64, 10)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), named_parameters=model.named_parameters())


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()} goes on at epoch {state.epoch}, step {state.step}, time={time.time():.2f}", flush=True)
    while state.epoch < args.epochs:
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(state.epoch))
        batches = order.split(args.batch)
        while state.step < len(batches):
            rows = batches[state.step][hvd.rank() :: hvd.size()]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pixels[rows]), labels[rows]).backward()
            optimizer.step()
            state.step += 1
            time.sleep(args.pause)
            state.commit()
        state.epoch, state.step = state.epoch + 1, 0
        if hvd.rank() == 0:
            print(f"epoch={state.epoch} workers={hvd.size()} time={time.time():.2f}", flush=True)
        state.commit()


train(hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, step=0))
if hvd.rank() == 0:
    accuracy = (model(test_pixels).argmax(1) == test_labels).float().mean().item()
    print(f"accuracy={accuracy:.4f}", flush=True)
