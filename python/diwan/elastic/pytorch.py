# SPDX-License-Identifier: Apache-2.0
"""PyTorch process groups for elastic training: one per view.

    from diwan.elastic import pytorch

    with elastic.Training(ledger, save, load, on_view=pytorch.join) as training:
        for step in training:
            with step:
                loss = model(data[step.samples])…; loss.backward()
                pytorch.all_reduce(step, [p.grad for p in model.parameters()])   # sums, in place
                optimizer.step()
"""

import ctypes
import datetime
import time
from typing import Iterable

import torch
import torch.distributed as dist

from .group import Group, Interrupted

_store = None  # kept for as long as its process group


def join(group: Group, backend: str = "gloo", timeout: float = 300.0) -> None:
    """Initialize torch.distributed with the members of a view; pass it to Training as ``on_view``."""
    global _store
    leave()
    host = group.view.members[0].address.rpartition(":")[0].strip("[]")
    try:
        if group.rank == 0:
            _store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
        port = int(group.broadcast(str(_store.port).encode() if group.rank == 0 else b"", 0))
        if group.rank > 0:
            _store = dist.TCPStore(host, port, is_master=False, timeout=datetime.timedelta(seconds=10))
        group.barrier()  # all are present, so the rendezvous does not take the whole timeout
        dist.init_process_group(backend, store=dist.PrefixStore(f"view {group.view.number}", _store), rank=group.rank,
                                world_size=group.size, timeout=datetime.timedelta(seconds=timeout))
    except RuntimeError as error:  # dist.DistError and its kind
        raise Interrupted(f"cannot make the process group of view {group.view.number}: {error}") from error


def leave(unfinished: bool = False) -> None:
    """Destroy the process group, without waiting for operations that others will never finish.

    ``unfinished`` says that there may be such an operation.
    """
    global _store
    if dist.is_initialized():
        group = dist.group.WORLD
        try:
            group._get_backend(torch.device("cpu")).abort()
        except (AttributeError, RuntimeError):  # other versions and backends
            if unfinished:  # deleting it would wait for the operation
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
        dist.destroy_process_group()
    _store = None


def all_reduce(step, tensors: Iterable[torch.Tensor]) -> None:
    """Sum tensors of one type and device over all workers of a step, in place, in one operation."""
    tensors = list(tensors)
    flat = torch.cat([t.detach().reshape(-1) for t in tensors] + [tensors[0].new_tensor([float(step.group.flag)])])
    try:
        work = dist.all_reduce(flat, async_op=True)
        pause = 1e-4
        while not work.is_completed():
            if step.group.abandoned():
                raise Interrupted(f"view {step.group.view.number} is over")
            time.sleep(pause)
            pause = min(2 * pause, 0.005)
        work.wait()
    except RuntimeError as error:
        leave()
        raise Interrupted(f"a member of view {step.group.view.number} is gone: {error}") from error
    except Interrupted:
        leave(unfinished=True)
        raise
    step.group.flagged, step.together = bool(flat[-1] > 0), True
    offset = 0
    for t in tensors:
        t.detach().copy_(flat[offset:offset + t.numel()].view_as(t))
        offset += t.numel()
