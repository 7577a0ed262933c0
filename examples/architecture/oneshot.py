#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Search for the cell of a small convolutional network that recognizes handwritten digits, in one run.

This is first-order DARTS (Liu, Simonyan and Yang, "DARTS: differentiable architecture search", 2019):
every edge of a cell computes all operations at once and mixes them by a softmax of its alphas.
The weights train on one half of the data, the alphas on the other; at the end each node keeps its
two best edges, each with its best operation. Images have one channel, and cells do not reduce them.

Everything here is plain Python 3.9 or newer. The three options are those that Katib's darts passes to a trial.
"""

import argparse
import csv
import json
import math
import os
import random
from operator import mul

SIDE, CLASSES = 8, 10
PIXELS = SIDE * SIDE


def dot(a, b):
    return sum(map(mul, a, b))


def neighbours(distance):
    """For each of the 9 positions around a pixel: its index for all pixels; PIXELS is the border."""
    def at(row, column):
        return row * SIDE + column if 0 <= row < SIDE and 0 <= column < SIDE else PIXELS

    steps = (-distance, 0, distance)
    return [[at(i // SIDE + r, i % SIDE + c) for i in range(PIXELS)] for r in steps for c in steps]


AROUND = {1: neighbours(1), 2: neighbours(2)}


def around(x, distance):
    padded = x + [0.0]
    return [[padded[i] for i in where] for where in AROUND[distance]]


def filtered(x, kernel, distance):
    """The image under a 3x3 kernel, and the shifted images that it weights."""
    parts = around(x, distance)
    return [dot(kernel, values) for values in zip(*parts)], parts


class Convolution:
    """A kernel and a rectifier."""

    def __init__(self, distance, rng):
        self.distance = distance
        self.kernel = Weights([rng.gauss(0, 1 / 3) for _ in range(9)])

    def __call__(self, x):
        raw, parts = filtered(x, self.kernel.values, self.distance)

        def back(gradient):
            gradient = [g if r > 0 else 0.0 for g, r in zip(gradient, raw)]
            for k, part in enumerate(parts):
                self.kernel.gradient[k] += dot(gradient, part)
            return filtered(gradient, self.kernel.values[::-1], self.distance)[0]

        return [r if r > 0 else 0.0 for r in raw], back


def average(x):
    kernel = [1 / 9] * 9
    return filtered(x, kernel, 1)[0], lambda gradient: filtered(gradient, kernel, 1)[0]


def maximum(x):
    choices = [max(range(9), key=values.__getitem__) for values in zip(*around(x, 1))]
    where = [AROUND[1][k][i] for i, k in enumerate(choices)]
    padded = x + [0.0]

    def back(gradient):
        out = [0.0] * (PIXELS + 1)
        for i, g in zip(where, gradient):
            out[i] += g
        return out[:PIXELS]

    return [padded[i] for i in where], back


def operation(name, rng):
    """The function for an operation of the search space: from one image to another, and its backward pass."""
    if name == "none":
        return lambda x: ([0.0] * PIXELS, lambda gradient: [0.0] * PIXELS)
    if name == "skip_connection":
        return lambda x: (x, lambda gradient: gradient)
    kinds = {
        "convolution_3x3": lambda: Convolution(1, rng),
        "dilated_convolution_3x3": lambda: Convolution(2, rng),
        "avg_pooling_3x3": lambda: average,
        "max_pooling_3x3": lambda: maximum,
    }
    if name not in kinds:
        raise SystemExit(f"operation {name} is not known: want one of {', '.join(kinds)}, skip_connection")
    return kinds[name]()


class Weights:
    """Trainable numbers, and the gradient of the loss with respect to them."""

    def __init__(self, values):
        self.values, self.gradient = values, [0.0] * len(values)
        self.first, self.second = [0.0] * len(values), [0.0] * len(values)

    def clear(self):
        self.gradient = [0.0] * len(self.values)


class Edge:
    """All operations at once, mixed by a softmax of alphas shared by all cells."""

    def __init__(self, names, alphas, rng):
        self.operations, self.alphas = [operation(name, rng) for name in names], alphas

    def __call__(self, x):
        mix = softmax(self.alphas.values)
        images, backs = zip(*(o(x) for o in self.operations))

        def back(gradient):
            scores = [dot(gradient, image) for image in images]
            mean = dot(mix, scores)
            out = [0.0] * PIXELS
            for o, (m, score) in enumerate(zip(mix, scores)):
                self.alphas.gradient[o] += m * (score - mean)
                out = [a + b for a, b in zip(out, backs[o]([m * g for g in gradient]))]
            return out

        return [dot(mix, values) for values in zip(*images)], back


class Network:
    def __init__(self, names, layers, nodes, rng):
        self.names, self.nodes = names, nodes
        self.alphas = [[Weights([1e-3 * rng.gauss(0, 1) for _ in names]) for _ in range(2 + n)] for n in range(nodes)]
        self.cells = [[[Edge(names, a, rng) for a in row] for row in self.alphas] for _ in range(layers)]
        self.classes = [Weights([rng.gauss(0, 1 / SIDE) for _ in range(PIXELS + 1)]) for _ in range(CLASSES)]

    def weights(self):
        edges = (edge for cell in self.cells for row in cell for edge in row)
        kernels = [o.kernel for edge in edges for o in edge.operations if isinstance(o, Convolution)]
        return kernels + self.classes

    def forward(self, image):
        """The logits, and the backward pass from their gradient."""
        cells = [image, image]
        tapes = []
        for cell in self.cells:
            states, tape = cells[-2:], []
            for row in cell:
                images, backs = zip(*(edge(x) for edge, x in zip(row, states)))
                tape.append(backs)
                states = states + [[sum(values) / len(row) for values in zip(*images)]]
            tapes.append(tape)
            cells.append([sum(values) / self.nodes for values in zip(*states[2:])])
        features = cells[-1] + [1.0]

        def back(errors):
            gradients = [[0.0] * PIXELS for _ in cells]
            for unit, error in zip(self.classes, errors):
                unit.gradient = [g + error * f for g, f in zip(unit.gradient, features)]
                gradients[-1] = [g + error * w for g, w in zip(gradients[-1], unit.values)]
            for c in range(len(tapes) - 1, -1, -1):
                share = [g / self.nodes for g in gradients[c + 2]]
                states = gradients[c:c + 2] + [share] * self.nodes
                for n in range(self.nodes - 1, -1, -1):
                    gradient = [g / (2 + n) for g in states[2 + n]]
                    for source, edge in enumerate(tapes[c][n]):
                        states[source] = [a + b for a, b in zip(states[source], edge(gradient))]
                gradients[c], gradients[c + 1] = states[0], states[1]

        return [dot(unit.values, features) for unit in self.classes], back

    def genotype(self):
        """The two best edges of each node, with their best operations, as Katib's program writes it."""
        cell = []
        for row in self.alphas:
            best = []
            for source, alphas in enumerate(row):
                mix = softmax(alphas.values)
                o = max((i for i, name in enumerate(self.names) if name != "none"), key=mix.__getitem__)
                best.append((mix[o], self.names[o], source))
            cell.append([(name, source) for _, name, source in sorted(best, reverse=True)[:2]])
        concat = f"range(2,{2 + self.nodes})"
        return f"Genotype(normal={cell},normal_concat={concat},reduce=[],reduce_concat={concat})".replace(" ", "")


def softmax(values):
    largest = max(values)
    powers = [math.exp(v - largest) for v in values]
    total = sum(powers)
    return [p / total for p in powers]


def learn(network, batch):
    """Add the gradients of the mean loss of a batch; return the loss and the number of correct digits."""
    loss = right = 0
    for pixels, digit in batch:
        logits, back = network.forward(pixels)
        chances = softmax(logits)
        loss -= math.log(max(chances[digit], 1e-12)) / len(batch)
        right += chances[digit] == max(chances)
        back([(p - (c == digit)) / len(batch) for c, p in enumerate(chances)])
    return loss, right


def descend(weights, rate, momentum, decay, clip):
    """A step of gradient descent with momentum, weight decay and gradient clipping."""
    norm = math.sqrt(sum(dot(w.gradient, w.gradient) for w in weights))
    scale = min(1, clip / norm) if clip and norm > 0 else 1
    for w in weights:
        w.first = [momentum * v + scale * g + decay * x for v, g, x in zip(w.first, w.gradient, w.values)]
        w.values = [x - rate * v for x, v in zip(w.values, w.first)]


def adam(weights, rate, decay, step):
    """A step of Adam with the betas of DARTS."""
    early, late = 1 - 0.5 ** step, 1 - 0.999 ** step
    for w in weights:
        gradient = [g + decay * x for g, x in zip(w.gradient, w.values)]
        w.first = [0.5 * m + 0.5 * g for m, g in zip(w.first, gradient)]
        w.second = [0.999 * m + 0.001 * g * g for m, g in zip(w.second, gradient)]
        w.values = [x - rate * (m / early) / (math.sqrt(s / late) + 1e-8) for x, m, s in zip(w.values, w.first, w.second)]


def digits(samples, rng):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "quickstart", "digits.csv")
    with open(path, newline="") as file:
        rows = [[int(cell) for cell in row] for row in csv.reader(file)]
    rng.shuffle(rows)
    return [([pixel / 16 for pixel in row[:-1]], row[-1]) for row in rows[:samples]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--algorithm-settings", required=True)
    parser.add_argument("--search-space", required=True)
    parser.add_argument("--num-layers", type=int, required=True)
    parser.add_argument("--samples", type=int, default=400)
    args = parser.parse_args()
    settings = json.loads(args.algorithm_settings.replace("'", '"'))
    names = json.loads(args.search_space.replace("'", '"')) + ["none"]

    def number(name):
        return float(settings[name])

    rng = random.Random(1)
    data = digits(args.samples, rng)
    training, validation = data[::2], data[1::2]
    network = Network(names, args.num_layers, int(settings["num_nodes"]), rng)
    alphas = [a for row in network.alphas for a in row]
    epochs, size, step = int(settings["num_epochs"]), int(settings["batch_size"]), 0
    for epoch in range(epochs):
        fall = (1 + math.cos(math.pi * epoch / epochs)) / 2
        rate = number("w_lr_min") + (number("w_lr") - number("w_lr_min")) * fall
        loss = right = seen = 0
        for start in range(0, len(training), size):
            step += 1
            for w in network.weights() + alphas:
                w.clear()
            batch = validation[start:start + size] or validation
            batch_loss, batch_right = learn(network, batch)
            loss, right, seen = loss + batch_loss * len(batch), right + batch_right, seen + len(batch)
            adam(alphas, number("alpha_lr"), number("alpha_weight_decay"), step)
            for w in network.weights():
                w.clear()
            learn(network, training[start:start + size])
            descend(network.weights(), rate, number("w_momentum"), number("w_weight_decay"), number("w_grad_clip"))
        print(f"epoch {epoch + 1} loss={loss / seen:.4f} accuracy={right / seen:.4f}", flush=True)
    print(f"\nBest-Genotype={network.genotype()}")


if __name__ == "__main__":
    main()
