# SPDX-License-Identifier: Apache-2.0
"""Stands in for the Horovod program of Katib's example of an MPIJob: same options, the first rank reports."""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--num-steps", type=int, required=True)
args = parser.parse_args()

assert os.environ["OMPI_COMM_WORLD_SIZE"] == "2"
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    print(f"loss={1 / args.num_steps + args.lr:.5f}", flush=True)
