# SPDX-License-Identifier: Apache-2.0
"""SMAC3 with its facade for tuning hyper-parameters."""

import logging
import tempfile
import warnings

from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    InCondition,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from protocol import serve

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def hyperparameter(p):
    if p.kind == "categorical":
        return CategoricalHyperparameter(p.name, p.choices)
    kind = UniformIntegerHyperparameter if p.kind == "int" else UniformFloatHyperparameter
    return kind(p.name, lower=p.low, upper=p.high, log=p.log)


def configuration_space(parameters, seed):
    space = ConfigurationSpace(seed=seed)
    made = {p.name: hyperparameter(p) for p in parameters}
    kinds = {p.name: p.kind for p in parameters}
    space.add(list(made.values()))
    for p in parameters:
        if p.parent:
            values = [int(v) if kinds[p.parent] == "int" else v for v in p.values]
            space.add(InCondition(made[p.name], made[p.parent], values))
    return space


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.folder = tempfile.TemporaryDirectory()
        self.space = configuration_space(parameters, seed)
        scenario = Scenario(
            self.space,
            deterministic=True,
            n_trials=trials,
            seed=seed,
            output_directory=self.folder.name,
        )
        self.facade = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=False
        )
        self.asked = []

    def ask(self):
        self.asked.append(self.facade.ask())
        return dict(self.asked[-1].config)

    def tell(self, index, value):
        self.facade.tell(self.asked[index], TrialValue(cost=value), save=False)

    def load(self, points, values):
        # Its initial design comes first in any case; the rest are
        # configurations of its own making, as its conditions want them.
        values = iter(values)
        for value in values:
            self.ask()
            self.tell(len(self.asked) - 1, value)
            if "Initial" not in (self.asked[-1].config.origin or ""):
                break
        rest = list(values)
        configs = self.space.sample_configuration(len(rest)) if len(rest) > 1 else []
        for config, value in zip(configs, rest):
            self.asked.append(TrialInfo(config, seed=0))
            self.tell(len(self.asked) - 1, value)
        self.asked += [None] * (len(points) - len(self.asked))


serve(Adapter)
