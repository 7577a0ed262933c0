# SPDX-License-Identifier: Apache-2.0
"""torchrun with views as its rendezvous.

    diwan elastic agent … -- python3 -m diwan.elastic.torchrun --nnodes 1:8 --nproc-per-node 2 train.py

is ``torchrun --rdzv-backend=diwan``: any script for torchrun runs. Which nodes take part is what the agents
agree on, so a lost node is noticed within a second or two, and it does not matter which one is lost; PyTorch's own c10d
rendezvous lives on one of the nodes. As ever with torchrun, all processes start again when nodes change, and must
go on from a checkpoint; ``diwan.elastic.Training`` keeps them running instead.
"""

import os
import sys
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.elastic import rendezvous
from torch.distributed.elastic.rendezvous import RendezvousClosedError, RendezvousHandler, rendezvous_handler_registry

from .agent import Agent
from .group import Group, Interrupted, Listener
from .training import own_address


class ViewRendezvous(RendezvousHandler):
    """Each rendezvous is the next view. A node's rank is that of the view."""

    def __init__(self, params):
        self._run_id = params.run_id
        self._host = os.environ.get("DIWAN_ELASTIC_HOST") or own_address()
        self._listener = Listener(self._host)
        self._agent = Agent(f"{self._host}:{self._listener.port}", params.endpoint or None)
        self._view = None
        self._store = None
        self._closed = False

    def get_backend(self) -> str:
        return "diwan"

    def next_rendezvous(self):
        if self._view is not None:
            self._agent.broken(self._view)
        while True:
            state = self._agent.wait(self._view)
            if state is None:
                raise RendezvousClosedError("the agent is gone")
            self._view = view = state.view
            try:
                group = Group(view, state.rank, self._listener, abandoned=self._stale)
                try:
                    return self._meet(group)
                finally:
                    group.close()
            except (Interrupted, RuntimeError):  # the second is of the store
                self._agent.broken(view)

    def _meet(self, group: Group):
        """Create a store shared by the nodes, served by rank 0."""
        host = group.view.members[0].address.rpartition(":")[0]
        if group.rank == 0:
            self._store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
        port = int(group.broadcast(str(self._store.port).encode() if group.rank == 0 else b"", 0))
        if group.rank > 0:
            self._store = dist.TCPStore(host, port, is_master=False, timeout=timedelta(seconds=10))
        store = dist.PrefixStore(f"view {group.view.number}", self._store)
        if not hasattr(rendezvous, "RendezvousInfo"):  # before PyTorch 2.4
            return store, group.rank, group.size
        return rendezvous.RendezvousInfo(store, group.rank, group.size, rendezvous.RendezvousStoreInfo.build(group.rank, store, self._host))

    def _stale(self) -> bool:
        state = self._agent.state
        return state is None or state.view.key != self._view.key

    def num_nodes_waiting(self) -> int:
        """1 if there is a newer view than the one being trained: torchrun then restarts its processes."""
        return int(self._view is not None and self._stale())

    def is_closed(self) -> bool:
        return self._closed

    def set_closed(self) -> None:
        self._closed = True

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        self._closed = True
        self._agent.leave()
        return True


def main() -> None:
    """Run torchrun with the arguments of this program."""
    from torch.distributed import run

    rendezvous_handler_registry.register("diwan", ViewRendezvous)
    run.main(["--rdzv_backend=diwan", *sys.argv[1:]])


if __name__ == "__main__":
    main()
