# SPDX-License-Identifier: Apache-2.0
"""Softmax regression on handwritten digits, with workers that come and go.

Each worker runs this program under an agent:

    diwan elastic agent --name w0 --founder w0 --gossip 127.0.0.1:7946 -- python3 train.py

It needs only Python. Along with the gradient it sums how often each sample has been used, so that at the
end of each epoch it can tell whether each was used exactly once.
"""

import argparse
import csv
import json
import math
import os
import random
import sys
import time
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from diwan import elastic  # noqa: E402

PIXELS, DIGITS = 64, 10
WEIGHTS = DIGITS * (PIXELS + 1)


class Model:
    """A weight for each pixel and digit, and a use count for each sample in this epoch."""

    def __init__(self, samples: int, rate: float, seed):
        draw = random.Random(seed)  # without a seed each worker draws its own weights: all start with those of rank 0
        self.weights = array("d", (draw.gauss(0, 0.01) for _ in range(WEIGHTS)))
        self.used = array("d", bytes(8 * samples))
        self.epoch, self.loss, self.rate = 0, 0.0, rate

    def dump(self) -> bytes:
        return array("d", [self.epoch, self.loss]).tobytes() + self.weights.tobytes() + self.used.tobytes()

    def load(self, data: bytes) -> None:
        values = array("d", data)
        self.epoch, self.loss = int(values[0]), values[1]
        self.weights, self.used = values[2:2 + WEIGHTS], values[2 + WEIGHTS:]

    def gradient(self, rows, samples) -> array:
        """Summed over some samples: the gradient, then the loss, then the use count of each sample."""
        total = array("d", bytes(8 * (WEIGHTS + 1 + len(self.used))))
        for sample in samples:
            pixels, digit = rows[sample]
            scores = [sum(map(float.__mul__, self.weights[k * (PIXELS + 1):(k + 1) * (PIXELS + 1)], pixels)) for k in range(DIGITS)]
            top = max(scores)
            powers = [math.exp(s - top) for s in scores]
            whole = sum(powers)
            for k in range(DIGITS):
                error = powers[k] / whole - (k == digit)
                start = k * (PIXELS + 1)
                for i, pixel in enumerate(pixels):
                    total[start + i] += error * pixel
            total[WEIGHTS] -= math.log(powers[digit] / whole)
            total[WEIGHTS + 1 + sample] += 1
        return total

    def update(self, total: array, count: int) -> None:
        for i in range(WEIGHTS):
            self.weights[i] -= self.rate * total[i] / count
        self.loss += total[WEIGHTS]
        for i in range(len(self.used)):
            self.used[i] += total[WEIGHTS + 1 + i]


def read(path: str):
    """The rows of the file: pixels from 0 to 1, then a 1 for the bias, and the digit."""
    with open(path, newline="") as file:
        return [([int(v) / 16 for v in row[:PIXELS]] + [1.0], int(row[PIXELS])) for row in csv.reader(file)]


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.path.join(here, "..", "quickstart", "digits.csv"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, help="of the first weights")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes besides, as if the model were larger")
    parser.add_argument("--pause-while", default="", metavar="FILE", help="pause only while this file exists")
    options = parser.parse_args()

    rows = read(options.data)
    model = Model(len(rows), options.rate, options.seed)
    ledger = elastic.Ledger(len(rows), options.batch, options.epochs, seed=1)

    def on_view(group):
        names = ",".join(m.name for m in group.view.members)
        print(f"view={group.view.number} rank={group.rank} of={group.size} members={names} at={ledger.position} time={time.time():.3f}", flush=True)

    def end_of_epoch():
        exact = all(n == 1 for n in model.used)
        print(f"epoch={model.epoch + 1} loss={model.loss / len(rows):.6f} samples={int(sum(model.used))} once={json.dumps(exact)}", flush=True)
        model.epoch, model.loss, model.used = model.epoch + 1, 0.0, array("d", bytes(8 * len(rows)))

    with elastic.Training(ledger, model.dump, model.load, on_view) as training:
        for step in training:
            with step:
                total = model.gradient(rows, step.samples)
                if not options.pause_while or os.path.exists(options.pause_while):
                    time.sleep(options.pause)
                step.all_reduce(total)
                model.update(total, step.count)
                if step.cursor + step.count == len(rows):
                    end_of_epoch()


if __name__ == "__main__":
    main()
