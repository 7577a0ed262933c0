# SPDX-License-Identifier: Apache-2.0
"""Optuna's pruners: optuna_pruner_peer.py tpe|random median|halving|hyperband.

Beside the operations of protocol.py it answers report, whether the trial is to
be pruned after its value at a step, and stop, which ends a trial that was.
"""

import sys
import warnings

import optuna

from protocol import serve

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)

SAMPLER, PRUNER = sys.argv[1:]
EPOCHS = 81


def pruner():
    if PRUNER == "median":
        return optuna.pruners.MedianPruner()
    if PRUNER == "halving":
        return optuna.pruners.SuccessiveHalvingPruner()
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=EPOCHS)


def sampler(seed):
    if SAMPLER == "tpe":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True)
    return optuna.samplers.RandomSampler(seed=seed)


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        self.study = optuna.create_study(sampler=sampler(seed), pruner=pruner(), study_name=f"study-{seed}")
        self.trials = []

    def ask(self):
        trial = self.study.ask()
        self.trials.append(trial)
        point = {}
        for p in self.parameters:
            suggest = trial.suggest_int if p.kind == "int" else trial.suggest_float
            point[p.name] = suggest(p.name, p.low, p.high, log=p.log)
        return point

    def report(self, index, step, value):
        self.trials[index].report(value, step)
        return self.trials[index].should_prune()

    def tell(self, index, value):
        self.study.tell(self.trials[index], value)

    def stop(self, index):
        self.study.tell(self.trials[index], state=optuna.trial.TrialState.PRUNED)


serve(Adapter)
