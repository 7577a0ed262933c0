# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, 1,797 pictures of 64 pixels, in the parts of several processes."""

import os

import numpy

DATA = os.environ.get("DIGITS", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "quickstart", "digits.csv"))


def load():
    """Pixels from 0 to 1 and labels, first for training and then, every fifth row, for a test."""
    rows = numpy.loadtxt(DATA, delimiter=",")
    test = numpy.arange(len(rows)) % 5 == 0
    pixels, labels = rows[:, :-1] / 16, rows[:, -1].astype(int)
    return pixels[~test], labels[~test], pixels[test], labels[test]


def shard(rank, world, *arrays):
    """The rows of each array that belong to one of world processes."""
    return [array[rank::world] for array in arrays]
