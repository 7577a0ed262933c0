# SPDX-License-Identifier: Apache-2.0
"""The loop of an elastic training."""

import os
import socket
import struct
from typing import Callable, List, Optional

from .agent import Agent, State
from .group import Group, Interrupted, Listener
from .ledger import Ledger

STAMP = struct.Struct("<qq")  # position of the ledger, number of the view it was reached in
FRESH = (-1, 0)  # for a worker that has done nothing and restored nothing


class Step:
    """One step: a batch of ``count`` samples, of which this worker has ``samples``.

    Used in a ``with`` statement: at its end the step is counted; if a collective operation is interrupted, the
    step is left, and done again in the next view.
    """

    def __init__(self, training: "Training"):
        ledger, group = training.ledger, training.group
        self._training = training
        self.group = group
        self.rank, self.size = group.rank, group.size
        self.epoch, self.cursor, self.count = ledger.epoch, ledger.cursor, ledger.count
        self.samples: List[int] = ledger.lease(group.rank, group.size)
        self.done = False
        self.together = False  # whether all workers are known to have done it

    def all_reduce(self, values) -> None:
        """Sum a buffer of floats or doubles over all workers, in place; see Group.all_reduce."""
        self.group.all_reduce(values)
        self.together = True

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, kind, error, trace) -> bool:
        if kind is None and not self.together:
            try:
                self.group.barrier()  # a step without a collective operation counts at all or at none
            except Interrupted:
                kind = Interrupted
        if kind is None:
            self._training._count(self)
            return False
        if issubclass(kind, Interrupted):
            self._training._interrupt()
            return True
        return False


class Training:
    """An iterator of steps until the ledger is done, across changing views.

    ``save`` returns the model (and the optimiser, and all else that a step depends on) as bytes, ``load`` takes
    it over. The ledger travels with it. A worker that has restored a checkpoint of its own loads model and ledger before.
    ``on_view(group)`` is called when a view begins, after the state is the same everywhere; it may raise Interrupted.

    ``host`` is where other workers reach this one: by default what the variable DIWAN_ELASTIC_HOST says, else the
    address of this machine's name. ``timeout`` is how many seconds workers may be apart in a step, for one computes
    longer than another; that a worker is gone is told by its agent, much sooner.
    """

    def __init__(self, ledger: Ledger, save: Callable[[], bytes], load: Callable[[bytes], None],
                 on_view: Optional[Callable[[Group], None]] = None, agent: Optional[str] = None,
                 host: Optional[str] = None, timeout: float = 300.0):
        self.ledger, self.save, self.load, self.on_view, self.timeout = ledger, save, load, on_view, timeout
        self.group: Optional[Group] = None
        host = host or os.environ.get("DIWAN_ELASTIC_HOST") or own_address()
        self._listener = Listener(host)
        self._agent = Agent(f"[{host}]:{self._listener.port}" if ":" in host else f"{host}:{self._listener.port}", agent)
        self._view = None  # the last that a group was tried for
        self._stamp = (ledger.position, 0) if ledger.position > 0 else FRESH

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.close(finished=kind is None)

    def close(self, finished: bool = True) -> None:
        """Leave the training. The others continue at once."""
        if self.group:
            self.group.close()
            self.group = None
        if finished:
            self._agent.leave()
        else:
            self._agent.close()
        self._listener.close()

    def __iter__(self):
        while True:
            if self.group is None and not self._regroup():
                return
            if self.ledger.done:
                if self._finish():
                    return
                continue
            yield Step(self)

    def _count(self, step: Step) -> None:
        if step.done:
            raise RuntimeError("cannot count a step twice")
        step.done = True
        self.ledger.commit()
        self._stamp = (self.ledger.position, step.group.view.number)
        self._look()
        if step.group.flagged or (step.size == 1 and step.group.flag):
            self._leave_group()

    def _look(self) -> None:
        """Flag the group if another view is known, so that all leave it after the same step."""
        self.group.flag = self._superseded()

    def _superseded(self) -> bool:
        """Whether there is a newer view than the group's."""
        state = self._agent.state
        return state is None or state.view.key != self._view.key

    def _abandoned(self) -> bool:
        """Whether to give up an operation at once: unless the view has merely grown, it cannot be finished.

        Of a view later than the next, it is not known whether somebody went and came back.
        """
        state, view = self._agent.state, self._view
        if state is None or state.view.key == view.key:
            return state is None
        return state.view.key != (view.history, view.number + 1) or not {m.id for m in view.members} < {m.id for m in state.view.members}

    def _interrupt(self) -> None:
        """Request a new view to replace the broken one."""
        self._agent.broken(self._view)
        self._leave_group()

    def _leave_group(self) -> None:
        if self.group:
            self.group.close()
        self.group = None

    def _regroup(self) -> bool:
        """Wait for a view and take over the state of its most advanced member. False if all is done and nobody is left."""
        while True:
            state = self._next_view()
            if state is None:
                return False
            self._view = state.view
            try:
                self.group = Group(state.view, state.rank, self._listener, self.timeout, self._superseded)
                self.group.abandoned = self._abandoned
                self._hand_over(self.group)
                if self.on_view:
                    self.on_view(self.group)
                self._look()
                return True
            except Interrupted:
                self._interrupt()

    def _next_view(self) -> Optional[State]:
        if not self.ledger.done:
            return self._agent.wait(self._view)
        state = self._agent.wait(self._view, ready=False)  # only to tell others about the end
        return state if state is not None and state.ready else None

    def _hand_over(self, group: Group) -> None:
        stamps = [STAMP.unpack(s) for s in group.all_gather(STAMP.pack(*self._stamp))]
        best = max(stamps)
        source = stamps.index(best)
        if best == FRESH:
            best = (0, group.view.number)  # the beginning: all start from rank 0's state
        elif all(stamp == best for stamp in stamps):
            return
        mine = group.rank == source
        data = self.ledger.dump() if mine else b""
        data = struct.pack("<I", len(data)) + data + self.save() if mine else b""
        data = group.broadcast(data, source)
        if not mine and self._stamp != best:
            (length,) = struct.unpack_from("<I", data)
            self.ledger.load(data[4:4 + length])
            self.load(data[4 + length:])
        self._stamp = best

    def _finish(self) -> bool:
        """Wait until the others are done too, so that a worker that missed the last step can get the state."""
        try:
            self._look()
            self.group.barrier()
            if not self.group.flagged:
                return True
            self._leave_group()  # a new worker joined, and must get the state before all leave
        except Interrupted:
            self._interrupt()
        return False


def own_address() -> str:
    """The address of this machine's host name, loopback if it has none."""
    try:
        return socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        return "127.0.0.1"
