# SPDX-License-Identifier: Apache-2.0
"""Elastic training: workers come and go.

An agent runs beside each worker (``diwan elastic agent -- python3 train.py``) and tells the worker
with whom it trains: a view, with a number and a rank for each member. This package is the worker's side::

    from diwan import elastic

    ledger = elastic.Ledger(samples=len(data), batch=64, epochs=10, seed=1)
    with elastic.Training(ledger, save=model.dump, load=model.load) as training:
        for step in training:
            with step:
                gradient = model.gradient(data, step.samples)   # this worker's part of the batch
                step.all_reduce(gradient)                       # summed over all workers, in place
                model.update(gradient / step.count)

A step either happens on every worker or is repeated. When the view changes, the members of the new view
take over the state of the most advanced worker, and continue after its last step: the model and the
ledger of its data travel together, so no sample is skipped and none counts twice. Two rules
ensure this: within a step, change the model only after the last collective operation, and include
all the state that the training depends on in what ``save`` returns.

It needs only the standard library. With numpy, sums are faster.
"""

from .agent import Agent, AgentError, Member, State, View
from .group import Group, Interrupted
from .ledger import Ledger
from .training import Step, Training

__all__ = ["Agent", "AgentError", "Group", "Interrupted", "Ledger", "Member", "State", "Step", "Training", "View"]
