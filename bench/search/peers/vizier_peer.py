# SPDX-License-Identifier: Apache-2.0
"""Vizier's default algorithm, GP-UCB-PE. It knows no conditions: all parameters always exist."""

import logging
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import jax

jax.config.update("jax_enable_x64", True)

from vizier import algorithms as vza
from vizier import pyvizier as vz
# As vizier's own policy factory imports it: the package of all designers wants
# libraries that this one does not.
from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit

from protocol import serve


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        problem = vz.ProblemStatement()
        problem.metric_information.append(vz.MetricInformation(name="value", goal=vz.ObjectiveMetricGoal.MINIMIZE))
        root = problem.search_space.root
        for p in parameters:
            scale = vz.ScaleType.LOG if p.log else vz.ScaleType.LINEAR
            if p.kind == "categorical":
                root.add_categorical_param(p.name, p.choices)
            elif p.kind == "int":
                root.add_int_param(p.name, p.low, p.high, scale_type=scale)
            else:
                root.add_float_param(p.name, p.low, p.high, scale_type=scale)
        self.designer = VizierGPUCBPEBandit(problem, rng=jax.random.PRNGKey(seed))
        self.trials, self.active, self.new = [], {}, []

    def update(self):
        self.designer.update(vza.CompletedTrials(self.new), vza.ActiveTrials(list(self.active.values())))
        self.new = []

    def ask(self):
        self.update()
        trial = self.designer.suggest(1)[0].to_trial(len(self.trials) + 1)
        self.active[trial.id] = trial
        self.trials.append(trial)
        return self.point(trial)

    def point(self, trial):
        point = {p.name: trial.parameters.get_value(p.name) for p in self.parameters}
        for p in self.parameters:
            if p.kind == "int":
                point[p.name] = int(point[p.name])
        return point

    def tell(self, index, value):
        trial = self.trials[index]
        trial.complete(vz.Measurement(metrics={"value": value}))
        self.active.pop(trial.id)
        self.new.append(trial)

    def load(self, points, values):
        for point, value in zip(points, values):
            trial = vz.TrialSuggestion(point).to_trial(len(self.trials) + 1)
            trial.complete(vz.Measurement(metrics={"value": value}))
            self.trials.append(trial)
            self.new.append(trial)
        self.update()


serve(Adapter)
