# SPDX-License-Identifier: Apache-2.0
"""hyperopt's TPE, through its own suggest function, so that points are asked and told."""

import math

import numpy as np
from hyperopt import JOB_STATE_DONE, STATUS_OK, Domain, Trials, hp, space_eval, tpe

from protocol import serve


class Expressions:
    """The parameters as hyperopt's expressions. A parameter that several values of its parent share is one node."""

    def __init__(self, parameters):
        self.parameters, self.made = parameters, {}

    def tree(self, p):
        """The expression of a parameter and of those below it, as a dictionary by name."""
        if p.kind == "categorical":
            options = p.choices
        elif p.kind == "int" and any(q.parent == p.name for q in self.parameters):
            options = range(p.low, p.high + 1)
        else:
            return {p.name: self.node(p.name, lambda: number(p))}
        return self.node(p.name, lambda: hp.choice(p.name, [self.option(p, o) for o in options]))

    def option(self, p, value):
        """A value of a parameter, and the parameters that exist under it."""
        children = [q for q in self.parameters if q.parent == p.name and str(value) in q.values]
        return {p.name: value, **{q.name: self.tree(q) for q in children}}

    def node(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


def number(p):
    if p.kind == "double":
        if p.log:
            return hp.loguniform(p.name, math.log(p.low), math.log(p.high))
        return hp.uniform(p.name, p.low, p.high)
    if p.log:
        # A quantised logarithm needs half a step more at both ends.
        return hp.qloguniform(p.name, math.log(max(p.low - 0.5, p.low / 2)), math.log(p.high + 0.5), 1)
    return hp.uniformint(p.name, p.low, p.high)


def flatten(value, name, into):
    if isinstance(value, dict):
        for k, v in value.items():
            flatten(v, k, into)
    else:
        into[name] = value


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        self.space = [Expressions(parameters).tree(p) for p in parameters if not p.parent]
        self.domain = Domain(lambda point: 0.0, self.space)
        self.trials = Trials()
        self.rng = np.random.default_rng(seed)
        self.docs = []

    def ask(self):
        self.trials.refresh()
        ids = self.trials.new_trial_ids(1)
        docs = tpe.suggest(ids, self.domain, self.trials, int(self.rng.integers(2**31 - 1)))
        self.trials.insert_trial_docs(docs)
        self.docs.append(docs[0])
        return self.point(docs[0])

    def point(self, doc):
        values = {k: v[0] for k, v in doc["misc"]["vals"].items() if v}
        point = {}
        for part in space_eval(self.space, values):
            flatten(part, "", point)
        for p in self.parameters:
            if p.name in point and p.kind == "int":
                point[p.name] = min(max(int(point[p.name]), p.low), p.high)
        return point

    def tell(self, index, value):
        # insert_trial_docs keeps a copy; the trial is found by its id.
        tid = self.docs[index]["tid"]
        doc = self.trials._dynamic_trials[tid]
        assert doc["tid"] == tid
        doc["state"] = JOB_STATE_DONE
        doc["result"] = {"loss": value, "status": STATUS_OK}

    def load(self, points, values):
        # Drawing points hyperopt's way would take hours; a flat space needs
        # nothing but its labels.
        ids = self.trials.new_trial_ids(len(points))
        miscs = [
            {
                "tid": tid,
                "cmd": ("domain_attachment", "FMinIter_Domain"),
                "workdir": None,
                "idxs": {k: [tid] for k in point},
                "vals": {k: [v] for k, v in point.items()},
            }
            for tid, point in zip(ids, points)
        ]
        results = [{"loss": value, "status": STATUS_OK} for value in values]
        docs = self.trials.new_trial_docs(ids, [None] * len(ids), results, miscs)
        for doc in docs:
            doc["state"] = JOB_STATE_DONE
        self.trials.insert_trial_docs(docs)
        self.docs += docs
        self.trials.refresh()


serve(Adapter)
