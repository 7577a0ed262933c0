# SPDX-License-Identifier: Apache-2.0
"""pycma's CMA-ES in the unit cube, as its users do who have a budget: from the centre with a sixth of the range,
restarted where it stops. Categories and whole numbers are cells of an axis."""

import cma

from protocol import serve


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters, self.seed = parameters, seed
        # One dimension is not enough for it: an idle second one is added.
        self.dimensions = max(2, len(parameters))
        self.restarts = 0
        self.points, self.told = [], {}
        self.begin([0.5] * self.dimensions, None)

    def begin(self, start, popsize):
        options = {"bounds": [0, 1], "seed": self.seed + 1000 * self.restarts + 1, "verbose": -9}
        if popsize:
            options["popsize"] = popsize
        self.es = cma.CMAEvolutionStrategy(start, 1 / 6, options)
        self.queue, self.generation, self.values = [], [], {}

    def ask(self):
        if not self.queue:
            # Pending points of the last generation do not hold up the next.
            self.queue = list(self.es.ask())
            self.generation = [None] * len(self.queue)
            self.values = {}
        at = len(self.generation) - len(self.queue)
        x = self.queue.pop(0)
        self.generation[at] = x
        self.points.append((self.es, self.generation, self.values, at, x))
        return {p.name: p.quantile(min(max(u, 0.0), 1.0)) for p, u in zip(self.parameters, x)}

    def tell(self, index, value):
        es, generation, values, at, x = self.points[index]
        values[at] = value
        if len(values) < len(generation) or es is not self.es:
            return
        try:
            es.tell(generation, [values[i] for i in range(len(generation))])
        except Exception:  # of a generation that came after a later one
            return
        if es.stop():
            self.restarts += 1
            draw = __import__("random").Random(self.seed + self.restarts)
            self.begin([draw.random() for _ in range(self.dimensions)], 2 * es.popsize)

    def load(self, points, values):
        for value in values:
            self.ask()
            self.tell(len(self.points) - 1, value)


serve(Adapter)
