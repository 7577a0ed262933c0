# SPDX-License-Identifier: Apache-2.0
"""scikit-optimize's optimiser with a Gaussian process. It knows no conditions: all parameters always exist."""

import warnings

import numpy as np

for name, kind in (("int", int), ("float", float), ("bool", bool)):
    if not hasattr(np, name):  # removed from numpy, still used by some releases
        setattr(np, name, kind)

from skopt import Optimizer
from skopt.space import Categorical, Integer, Real

from protocol import serve

warnings.filterwarnings("ignore")


def dimension(p):
    if p.kind == "categorical":
        return Categorical(p.choices, name=p.name)
    kind = Integer if p.kind == "int" else Real
    return kind(p.low, p.high, prior="log-uniform" if p.log else "uniform", name=p.name)


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        self.parallel = parallel
        self.optimizer = Optimizer(
            [dimension(p) for p in parameters], base_estimator="GP", random_state=seed, n_initial_points=10
        )
        self.points, self.pending = [], {}

    def ask(self):
        optimizer = self.optimizer
        if self.pending and len(optimizer.Xi) >= 10:
            # The optimiser offers constant liars for batches only: lie here
            # about the pending ones, as its ask(n_points, "cl_min") does.
            optimizer = optimizer.copy(random_state=len(self.points))
            lie = float(np.min(optimizer.yi))
            optimizer.tell(list(self.pending.values()), [lie] * len(self.pending))
        elif self.pending:
            x = self.optimizer.space.rvs(random_state=1000 + len(self.points))[0]
            return self.suggested(x)
        return self.suggested(optimizer.ask())

    def suggested(self, x):
        self.pending[len(self.points)] = x
        self.points.append(x)
        return {p.name: v for p, v in zip(self.parameters, x)}

    def tell(self, index, value):
        self.pending.pop(index, None)
        # Beyond this the surrogate overflows.
        self.optimizer.tell(self.points[index], float(np.clip(value, -1e100, 1e100)))

    def load(self, points, values):
        rows = [[p[q.name] for q in self.parameters] for p in points]
        self.points += rows
        self.optimizer.tell(rows, list(values), fit=False)
        self.optimizer._n_initial_points = 1  # the next value fits the model


serve(Adapter)
