# SPDX-License-Identifier: Apache-2.0
"""Optuna's samplers: optuna_peer.py tpe|tpe-independent|gp|cmaes|random."""

import sys
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from protocol import existing, serve

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)

WHICH = sys.argv[1]


def sampler(seed, parallel):
    samplers = optuna.samplers
    if WHICH == "tpe":
        return samplers.TPESampler(seed=seed, multivariate=True, group=True, constant_liar=parallel > 1)
    if WHICH == "tpe-independent":
        return samplers.TPESampler(seed=seed, multivariate=False, constant_liar=parallel > 1)
    if WHICH == "gp":
        return samplers.GPSampler(seed=seed)
    if WHICH == "cmaes":
        return samplers.CmaEsSampler(seed=seed)
    return samplers.RandomSampler(seed=seed)


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        self.study = optuna.create_study(sampler=sampler(seed, parallel))
        self.trials = []

    def ask(self):
        trial = self.study.ask()
        self.trials.append(trial)
        point = {}
        for p in self.parameters:
            if not p.exists(point):
                continue
            if p.kind == "categorical":
                point[p.name] = trial.suggest_categorical(p.name, p.choices)
            elif p.kind == "int":
                point[p.name] = trial.suggest_int(p.name, p.low, p.high, log=p.log)
            else:
                point[p.name] = trial.suggest_float(p.name, p.low, p.high, log=p.log)
        return point

    def tell(self, index, value):
        self.study.tell(self.trials[index], value)

    def load(self, points, values):
        if WHICH == "cmaes":  # which only knows points of its own making
            for value in values:
                self.ask()
                self.tell(len(self.trials) - 1, value)
            return

        def distribution(p):
            if p.kind == "categorical":
                return CategoricalDistribution(p.choices)
            kind = IntDistribution if p.kind == "int" else FloatDistribution
            return kind(p.low, p.high, log=p.log)

        self.trials = [None] * len(points)
        distributions = {p.name: distribution(p) for p in self.parameters}
        self.study.add_trials(
            [
                optuna.trial.create_trial(
                    params=params, distributions={k: distributions[k] for k in params}, value=value
                )
                for params, value in ((existing(self.parameters, p), v) for p, v in zip(points, values))
            ]
        )


serve(Adapter)
