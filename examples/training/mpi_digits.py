# SPDX-License-Identifier: Apache-2.0
"""Train a softmax classifier on digits under mpirun, each process with its shard of the rows.

Gradients are summed over all processes by an all-reduce in every step.
"""

import argparse

import numpy
from mpi4py import MPI

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--lr", type=float, default=2.0)
args = parser.parse_args()

comm = MPI.COMM_WORLD
rank, world = comm.Get_rank(), comm.Get_size()
pixels, labels, test_pixels, test_labels = digits.load()
rows = len(labels)
pixels, labels = digits.shard(rank, world, pixels, labels)

weights = numpy.zeros((64, 10))
total = numpy.empty_like(weights)
for step in range(args.steps):
    scores = pixels @ weights
    scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    errors = scores / scores.sum(axis=1, keepdims=True)
    errors[numpy.arange(len(labels)), labels] -= 1
    comm.Allreduce(pixels.T @ errors, total)
    weights -= args.lr * total / rows
accuracy = (numpy.argmax(test_pixels @ weights, axis=1) == test_labels).mean()
print(f"rank {rank} of {world} on {MPI.Get_processor_name()} rows={len(labels)} accuracy={accuracy:.4f}", flush=True)
