# SPDX-License-Identifier: Apache-2.0
"""A worker of the measurements: a network with one hidden layer on handwritten digits.

--mode ring      diwan.elastic, its own all-reduce on numpy
--mode gloo      diwan.elastic, PyTorch's process groups
--mode torchrun  PyTorch's process groups, set up by torchrun: checkpoints, and starts again

Each step is reported with its time. The use of each sample is summed together with the gradient.
"""

import argparse
import csv
import os
import sys
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from diwan import elastic  # noqa: E402

HIDDEN, PIXELS, DIGITS = 64, 64, 10
SHAPES = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, DIGITS), (DIGITS,)]
SIZE = sum(int(numpy.prod(s)) for s in SHAPES)


class Model:
    def __init__(self, samples: int, rate: float, seed: int):
        draw = numpy.random.default_rng(seed)
        self.weights = numpy.concatenate([(draw.normal(0, 0.1, s) if len(s) > 1 else numpy.zeros(s)).ravel() for s in SHAPES])
        self.used = numpy.zeros(samples)
        self.rate = rate

    def dump(self) -> bytes:
        return self.weights.tobytes() + self.used.tobytes()

    def load(self, data: bytes) -> None:
        values = numpy.frombuffer(data).copy()
        self.weights, self.used = values[:SIZE], values[SIZE:]

    def split(self, flat):
        parts, at = [], 0
        for shape in SHAPES:
            count = int(numpy.prod(shape))
            parts.append(flat[at:at + count].reshape(shape))
            at += count
        return parts

    def loss(self, x, y):
        """The mean loss, and what the gradient needs."""
        w1, b1, w2, b2 = self.split(self.weights)
        hidden = numpy.tanh(x @ w1 + b1)
        scores = hidden @ w2 + b2
        scores -= scores.max(axis=1, keepdims=True)
        probability = numpy.exp(scores)
        probability /= probability.sum(axis=1, keepdims=True)
        return -numpy.log(probability[numpy.arange(len(y)), y]).mean(), hidden, probability

    def gradient(self, x, y, samples) -> numpy.ndarray:
        """Summed over some samples, with the use of each sample after it."""
        total = numpy.zeros(SIZE + len(self.used))
        if len(samples):
            x, y = x[samples], y[samples]
            _, hidden, error = self.loss(x, y)
            error[numpy.arange(len(y)), y] -= 1
            back = (error @ self.split(self.weights)[2].T) * (1 - hidden ** 2)
            for part, value in zip(self.split(total[:SIZE]), (x.T @ back, back.sum(0), hidden.T @ error, error.sum(0))):
                part[...] = value
            total[SIZE + numpy.asarray(samples)] += 1
        return total

    def update(self, total, count: int) -> None:
        self.weights = self.weights - self.rate * total[:SIZE] / count
        self.used = self.used + total[SIZE:]


def read(path: str):
    with open(path, newline="") as file:
        rows = numpy.array([[int(v) for v in row] for row in csv.reader(file)])
    return rows[:, :PIXELS] / 16.0, rows[:, PIXELS]


def say(**what) -> None:
    print(" ".join(f"{k}={v}" for k, v in what.items()), flush=True)


class Work:
    """What is the same in all modes."""

    def __init__(self, options):
        self.options = options
        self.x, self.y = read(options.data)
        self.model = Model(len(self.y), options.rate, options.seed)
        self.ledger = elastic.Ledger(len(self.y), options.batch, options.epochs, seed=1)

    def device(self, samples) -> None:
        """What an accelerator would take for some samples. The machine's few cores are no measure of it."""
        if not self.options.slow_while or os.path.exists(self.options.slow_while):
            time.sleep(self.options.step_seconds + self.options.sample_seconds * len(samples))

    def ended(self, epoch: int) -> None:
        used, self.model.used = self.model.used, numpy.zeros(len(self.y))
        say(epoch=epoch + 1, samples=int(used.sum()), once=bool((used == 1).all()), loss=f"{self.model.loss(self.x, self.y)[0]:.6f}", time=f"{time.time():.3f}")


def with_views(work: Work, reduce, on_view=None) -> None:
    def begin(group):
        if on_view:
            on_view(group)
        say(view=group.view.number, rank=group.rank, size=group.size, at=work.ledger.position, time=f"{time.time():.3f}")

    with elastic.Training(work.ledger, work.model.dump, work.model.load, begin) as training:
        for step in training:
            with step:
                total = work.model.gradient(work.x, work.y, step.samples)
                work.device(step.samples)
                reduce(step, total)
                work.model.update(total, step.count)
                say(step=work.ledger.position + step.count, size=step.size, time=f"{time.time():.3f}")
                if step.cursor + step.count == work.ledger.samples:
                    work.ended(step.epoch)


def with_torchrun(work: Work) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    path = work.options.checkpoint
    if os.path.exists(path):
        with open(path, "rb") as file:
            ledger, model = file.read().split(b"\n", 1)
        work.ledger.load(ledger)
        work.model.load(model)
    say(view=os.environ["TORCHELASTIC_RESTART_COUNT"], rank=rank, size=size, at=work.ledger.position, time=f"{time.time():.3f}")
    steps = 0
    while not work.ledger.done:
        epoch, last = work.ledger.epoch, work.ledger.cursor + work.ledger.count == work.ledger.samples
        samples, count = work.ledger.lease(rank, size), work.ledger.count
        total = work.model.gradient(work.x, work.y, samples)
        work.device(samples)
        dist.all_reduce(torch.from_numpy(total))
        work.model.update(total, count)
        say(step=work.ledger.position + count, size=size, time=f"{time.time():.3f}")
        work.ledger.commit()
        if last:
            work.ended(epoch)
        steps += 1
        if rank == 0 and steps % work.options.checkpoint_every == 0:
            with open(path + ".new", "wb") as file:
                file.write(work.ledger.dump() + b"\n" + work.model.dump())
            os.replace(path + ".new", path)
    dist.destroy_process_group()


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["ring", "gloo", "torchrun"], default="ring")
    parser.add_argument("--data", default=os.path.join(here, "..", "..", "examples", "quickstart", "digits.csv"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step-seconds", type=float, default=0.0)
    parser.add_argument("--sample-seconds", type=float, default=0.0)
    parser.add_argument("--slow-while", default="", metavar="FILE", help="take that time only while this file exists")
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--checkpoint-every", type=int, default=1)
    options = parser.parse_args()
    work = Work(options)
    if options.mode == "torchrun":
        with_torchrun(work)
    elif options.mode == "gloo":
        import torch

        from diwan.elastic import pytorch

        with_views(work, lambda step, total: pytorch.all_reduce(step, [torch.from_numpy(total)]), pytorch.join)
    else:
        with_views(work, lambda step, total: step.all_reduce(total))


if __name__ == "__main__":
    main()
