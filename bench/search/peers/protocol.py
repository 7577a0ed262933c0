# SPDX-License-Identifier: Apache-2.0
"""The benchmark's side of a conversation with an optimiser, in JSON lines.

An adapter is a class with

    __init__(parameters, seed, trials, parallel)   a new search
    ask() -> {name: value}                         the next point
    tell(index, value)                             the value of point `index`, counted from 0 by asks
    load(points, values)                           optional: points of old, told at once
    report(index, step, value), stop(index)        optional: see optuna_pruner_peer.py

`parameters` is a list of Parameter. A point may leave out parameters that do
not exist under the values of the others, or give them any value in range.
Standard output belongs to the conversation: what libraries print goes to
standard error.
"""

import json
import math
import os
import random
import sys
import time
import traceback
from dataclasses import dataclass, field


@dataclass
class Parameter:
    name: str
    kind: str  # double, int or categorical
    low: float = 0
    high: float = 0
    log: bool = False
    choices: list = field(default_factory=list)
    parent: str = ""
    values: list = field(default_factory=list)  # of the parent, as text

    def __post_init__(self):
        if self.kind not in ("double", "int", "categorical"):
            raise ValueError(f"no kind {self.kind}")
        if self.kind == "int":
            self.low, self.high = int(self.low), int(self.high)

    def exists(self, point):
        """Tells whether the parameter exists beside the values before it."""
        if not self.parent:
            return True
        return self.parent in point and str(point[self.parent]) in self.values

    def draw(self, rng):
        """Draws a value from the prior."""
        return self.quantile(rng.random())

    def quantile(self, u):
        """Maps [0, 1] to values, so that equal parts are equally likely."""
        if self.kind == "categorical":
            return self.choices[min(int(u * len(self.choices)), len(self.choices) - 1)]
        low, high = float(self.low), float(self.high)
        if self.kind == "int":
            low, high = low - 0.5, high + 0.5
            if self.log:
                low = max(low, self.low / 2)
        if self.log:
            value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
        else:
            value = low + u * (high - low)
        if self.kind == "int":
            value = round(value)
        return min(max(value, self.low), self.high)


def existing(parameters, point):
    """Leaves out of a point what does not exist."""
    kept = {}
    for p in parameters:
        if p.exists(kept):
            kept[p.name] = point[p.name]
    return kept


def draw(parameters, seed):
    """Draws a point of all parameters."""
    rng = random.Random(seed)
    return {p.name: p.draw(rng) for p in parameters}


def plain(value):
    """Turns a library's number into one of Python's."""
    return value.item() if hasattr(value, "item") else value


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def answer(state, adapter, request):
    op = request["op"]
    if op == "start":
        state.clear()  # the old search goes before the new one comes
        state["parameters"] = [Parameter(**p) for p in request["parameters"]]
        state["search"] = adapter(state["parameters"], request["seed"], request["trials"], request["parallel"])
        return {}
    search = state["search"]
    if op == "ask":
        return {"point": {k: plain(v) for k, v in existing(state["parameters"], search.ask()).items()}}
    if op == "tell":
        search.tell(request["index"], request["value"])
        return {}
    if op == "report":
        return {"stop": bool(search.report(request["index"], request["step"], request["value"]))}
    if op == "stop":
        search.stop(request["index"])
        return {}
    if op == "load":
        points = [draw(state["parameters"], seed) for seed in range(request["count"])]
        before = rss()
        search.load(points, [random.Random(-1 - i).random() for i in range(len(points))])
        return {"bytes": rss() - before}
    raise ValueError(f"no operation {op}")


def serve(adapter):
    """Answers requests until standard input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    state = {}
    for line in sys.stdin:
        began = time.process_time()
        try:
            reply = answer(state, adapter, json.loads(line))
        except Exception as e:
            traceback.print_exc()
            reply = {"error": f"{type(e).__name__}: {e}"[:500]}
        reply["cpu"] = time.process_time() - began
        print(json.dumps(reply), file=out, flush=True)
