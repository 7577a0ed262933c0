# SPDX-License-Identifier: Apache-2.0
"""The data ledger: which samples the model has been trained on."""

import json
import random
from typing import List, Sequence


class Ledger:
    """Leases the samples of each step to the workers, and counts a step once all of them have done it.

    In each of ``epochs`` passes, every one of ``samples`` samples is in exactly one batch. A batch has
    ``batch`` samples for all workers together, so what a step does to the model does not depend on how many
    there are; the last batch of an epoch may have fewer. The order is another one in each epoch, that of
    ``seed``, or that of the samples without ``shuffle``.

    The ledger is a part of the training's state: it is saved, handed over and restored with the model. Its state is
    the number of the epoch, from 0, and how many samples of it are done.
    """

    def __init__(self, samples: int, batch: int, epochs: int = 1, seed: int = 0, shuffle: bool = True):
        if samples < 1 or batch < 1 or epochs < 1:
            raise ValueError(f"cannot keep a ledger of {samples} samples in batches of {batch} over {epochs} epochs: all must be at least 1")
        self.samples, self.batch, self.epochs, self.seed, self.shuffle = samples, batch, epochs, seed, shuffle
        self.epoch = 0
        self.cursor = 0
        self._order: Sequence[int] = ()
        self._ordered = -1

    @property
    def done(self) -> bool:
        """Whether all epochs are done."""
        return self.epoch >= self.epochs

    @property
    def position(self) -> int:
        """How many samples have been counted, over all epochs."""
        return self.epoch * self.samples + self.cursor

    @property
    def count(self) -> int:
        """How many samples the next step has, for all workers together."""
        return 0 if self.done else min(self.batch, self.samples - self.cursor)

    def lease(self, rank: int, size: int) -> List[int]:
        """The samples of the next step for one of ``size`` workers.

        The leases of all ranks are disjoint and make up the batch. Nothing is counted by leasing.
        """
        if not 0 <= rank < size:
            raise ValueError(f"cannot lease to rank {rank} of {size}")
        count = self.count
        first, last = self.cursor + count * rank // size, self.cursor + count * (rank + 1) // size
        return list(self._permutation()[first:last])

    def commit(self) -> None:
        """Count the step."""
        if self.done:
            raise ValueError("cannot count a step: all epochs are done")
        self.cursor += self.count
        if self.cursor >= self.samples:
            self.epoch, self.cursor = self.epoch + 1, 0

    def dump(self) -> bytes:
        """The state, with what it is about."""
        return json.dumps({"of": self._of(), "epoch": self.epoch, "cursor": self.cursor}).encode()

    def load(self, data: bytes) -> None:
        """Load a state. It must have the same data, batches and order; the number of epochs may differ."""
        state = json.loads(data)
        if state["of"] != self._of():
            raise ValueError(f"cannot take over the ledger of {state['of']}: this one is of {self._of()}")
        epoch, cursor = int(state["epoch"]), int(state["cursor"])
        if epoch < 0 or not 0 <= cursor < self.samples:
            raise ValueError(f"cannot take over a ledger at sample {cursor} of {self.samples} in epoch {epoch}")
        self.epoch, self.cursor = epoch, cursor

    def _of(self) -> dict:
        return {"samples": self.samples, "batch": self.batch, "seed": self.seed, "shuffle": self.shuffle}

    def _permutation(self) -> Sequence[int]:
        if not self.shuffle:
            return range(self.samples)
        if self._ordered != self.epoch:
            order = list(range(self.samples))
            random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
            self._order, self._ordered = order, self.epoch
        return self._order
