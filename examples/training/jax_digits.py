# SPDX-License-Identifier: Apache-2.0
"""Train a softmax classifier on digits with JAX, each process with its shard of the rows.

COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID are set in a JAXJob. Gradients
are averaged over all processes in every step, so all have the same weights.
"""

import argparse
import os

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")

import jax.numpy as jnp
from jax.experimental import multihost_utils

import digits

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--lr", type=float, default=2.0)
args = parser.parse_args()

rank, world = int(os.environ["PROCESS_ID"]), int(os.environ["NUM_PROCESSES"])
jax.distributed.initialize(
    f'{os.environ["COORDINATOR_ADDRESS"]}:{os.environ["COORDINATOR_PORT"]}', num_processes=world, process_id=rank)

pixels, labels, test_pixels, test_labels = digits.load()
pixels, labels = digits.shard(rank, world, pixels, labels)


@jax.jit
def gradient(weights):
    def loss(weights):
        scores = jax.nn.log_softmax(pixels @ weights)
        return -scores[jnp.arange(len(labels)), labels].mean()

    return jax.value_and_grad(loss)(weights)


weights = jnp.zeros((64, 10))
for step in range(args.steps):
    loss, own = gradient(weights)
    weights -= args.lr * multihost_utils.process_allgather(own).mean(axis=0)
    if step % 20 == 19:
        print(f"step {step + 1} loss={float(loss):.4f}", flush=True)
accuracy = float((jnp.argmax(test_pixels @ weights, axis=1) == test_labels).mean())
print(f"rank {rank} of {world} rows={len(labels)} accuracy={accuracy:.4f}", flush=True)
jax.distributed.shutdown()
