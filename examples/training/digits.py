# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, 1,797 pictures of 64 pixels, sharded over several processes."""

import os

import numpy

DATA = os.environ.get("DIGITS", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "quickstart", "digits.csv"))


def load():
    """Pixels from 0 to 1 and labels: the training set, then the test set, which is every fifth row."""
    rows = numpy.loadtxt(DATA, delimiter=",")
    test = numpy.arange(len(rows)) % 5 == 0
    pixels, labels = rows[:, :-1] / 16, rows[:, -1].astype(int)
    return pixels[~test], labels[~test], pixels[test], labels[test]


def shard(rank, world, *arrays):
    """One process's shard of each array, out of world processes."""
    return [array[rank::world] for array in arrays]
