#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small neural network to recognize handwritten digits.

The network has one hidden layer of rectified linear units and a softmax output, and is trained by
stochastic gradient descent with momentum. Everything here is plain Python 3.9 or newer, so
nothing has to be installed; digits.csv is next to this file.

Every epoch prints one line, which is all that a tuner needs to know about a program:

    epoch 3 loss=0.2471 accuracy=0.9365
"""

import argparse
import csv
import math
import os
import random
from operator import mul

CLASSES = 10
HERE = os.path.dirname(os.path.abspath(__file__))


def dot(a, b):
    """The sum of a[i] * b[i]."""
    return sum(map(mul, a, b))


def load(path):
    """Read rows of 64 pixels (0..16) and a label into (pixels scaled to 0..1, label) pairs."""
    with open(path, newline="") as file:
        rows = [[int(cell) for cell in row] for row in csv.reader(file)]
    # The constant 1 at the end is the input of each unit's bias.
    return [([pixel / 16 for pixel in row[:-1]] + [1.0], row[-1]) for row in rows]


class Layer:
    """A fully connected layer: one row each of weights, gradients and velocities per unit."""

    def __init__(self, inputs, units, rng):
        scale = math.sqrt(2 / inputs)
        self.weights = [[rng.gauss(0, scale) for _ in range(inputs)] for _ in range(units)]
        self.velocity = [[0.0] * inputs for _ in range(units)]
        self.clear()

    def clear(self):
        self.gradient = [None] * len(self.weights)

    def forward(self, x):
        return [dot(row, x) for row in self.weights]

    def collect(self, x, errors):
        """Add one sample's gradient: each unit's error times its inputs."""
        for unit, error in enumerate(errors):
            if not error:
                continue
            row = self.gradient[unit]
            if row is None:
                self.gradient[unit] = [error * v for v in x]
            else:
                self.gradient[unit] = [g + error * v for g, v in zip(row, x)]

    def step(self, lr, momentum, samples):
        """Move the weights against the mean gradient of the batch."""
        rate = lr / samples
        for unit, row in enumerate(self.gradient):
            velocity = self.velocity[unit]
            if row is None:
                velocity = [momentum * v for v in velocity]
            else:
                velocity = [momentum * v - rate * g for v, g in zip(velocity, row)]
            self.velocity[unit] = velocity
            self.weights[unit] = [w + v for w, v in zip(self.weights[unit], velocity)]
        self.clear()


class Network:
    """Pixels -> hidden rectified linear units -> a probability for each digit."""

    def __init__(self, inputs, hidden, rng):
        self.hidden = Layer(inputs, hidden, rng)
        self.output = Layer(hidden + 1, CLASSES, rng)

    def forward(self, x):
        """The activations of the hidden layer and the probabilities of the digits."""
        hidden = [v if v > 0 else 0.0 for v in self.hidden.forward(x)] + [1.0]
        scores = self.output.forward(hidden)
        highest = max(scores)
        exps = [math.exp(s - highest) for s in scores]
        total = sum(exps)
        return hidden, [e / total for e in exps]

    def learn(self, batch, lr, momentum):
        """One step of gradient descent on a batch of samples."""
        for x, label in batch:
            hidden, errors = self.forward(x)
            errors[label] -= 1  # the gradient of cross entropy and softmax together
            back = [
                dot(errors, column) if active else 0.0
                for active, column in zip(hidden[:-1], zip(*self.output.weights))
            ]
            self.output.collect(hidden, errors)
            self.hidden.collect(x, back)
        self.output.step(lr, momentum, len(batch))
        self.hidden.step(lr, momentum, len(batch))

    def evaluate(self, samples):
        """The mean cross entropy and the accuracy."""
        loss, right = 0.0, 0
        for x, label in samples:
            _, probabilities = self.forward(x)
            loss -= math.log(max(probabilities[label], 1e-12))
            right += probabilities.index(max(probabilities)) == label
        return loss / len(samples), right / len(samples)


def train(args):
    rng = random.Random(args.seed)
    samples = load(args.data)
    rng.shuffle(samples)
    held_out = len(samples) // 5
    validation, training = samples[:held_out], samples[held_out:]

    network = Network(len(samples[0][0]), args.hidden, rng)
    for epoch in range(1, args.epochs + 1):
        rng.shuffle(training)
        for start in range(0, len(training), args.batch_size):
            network.learn(training[start : start + args.batch_size], args.lr, args.momentum)
        loss, accuracy = network.evaluate(validation)
        print(f"epoch {epoch} loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Train a small neural network to read handwritten digits.")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate (default %(default)s)")
    parser.add_argument("--momentum", type=float, default=0.5, help="momentum, 0 to 1 (default %(default)s)")
    parser.add_argument("--hidden", type=int, default=24, help="hidden units (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, help="samples a step (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=5, help="passes over the data (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of split, weights and order (default %(default)s)")
    parser.add_argument("--data", default=os.path.join(HERE, "digits.csv"), help="the samples (default %(default)s)")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
