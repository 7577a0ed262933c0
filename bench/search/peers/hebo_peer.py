# SPDX-License-Identifier: Apache-2.0
"""HEBO with its defaults. It knows no conditions: all parameters always exist."""

import warnings

warnings.filterwarnings("ignore")

import numpy as np
import pandas as pd
import torch

torch.set_num_threads(1)

from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from protocol import serve


def dimension(p):
    if p.kind == "categorical":
        return {"name": p.name, "type": "cat", "categories": p.choices}
    if p.kind == "int":
        return {"name": p.name, "type": "pow_int" if p.log else "int", "lb": p.low, "ub": p.high}
    return {"name": p.name, "type": "pow" if p.log else "num", "lb": p.low, "ub": p.high}


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.optimizer = HEBO(DesignSpace().parse([dimension(p) for p in parameters]), scramble_seed=seed)
        self.points = []

    def ask(self):
        row = self.optimizer.suggest(n_suggestions=1)
        self.points.append(row)
        point = row.iloc[0].to_dict()
        for p in self.parameters:
            if p.kind == "int":
                point[p.name] = int(point[p.name])
        return point

    def tell(self, index, value):
        self.optimizer.observe(self.points[index], np.array([[value]]))

    def load(self, points, values):
        rows = pd.DataFrame(points)
        self.points += [rows.iloc[[i]] for i in range(len(rows))]
        self.optimizer.observe(rows, np.array(values).reshape(-1, 1))


serve(Adapter)
