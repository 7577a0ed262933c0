# SPDX-License-Identifier: Apache-2.0
"""Train while workers come and go.

Beside each worker runs an agent (``diwan elastic agent -- python3 train.py``), which tells the worker
with whom it trains: a view, with a number and a rank for each member. This package is the worker's part::

    from diwan import elastic

    ledger = elastic.Ledger(samples=len(data), batch=64, epochs=10, seed=1)
    with elastic.Training(ledger, save=model.dump, load=model.load) as training:
        for step in training:
            with step:
                gradient = model.gradient(data, step.samples)   # this worker's part of the batch
                step.all_reduce(gradient)                       # summed over all workers, in place
                model.update(gradient / step.count)

A step either happens at every worker or is done again. When the view changes, those of the new view
take over the state of the worker that is furthest, and go on after its last step: the model and the
account of the data that made it travel together, so no sample is skipped and none counts twice. Two rules
make this true: within a step, change the model only after the last collective operation, and keep
whatever the training depends on in what ``save`` returns.

Nothing but the standard library is needed. With numpy, sums are faster.
"""

from .agent import Agent, AgentError, Member, State, View
from .group import Group, Interrupted
from .ledger import Ledger
from .training import Step, Training

__all__ = ["Agent", "AgentError", "Group", "Interrupted", "Ledger", "Member", "State", "Step", "Training", "View"]
