# SPDX-License-Identifier: Apache-2.0
"""Collective operations among the members of a view, over a ring of TCP connections."""

import json
import operator
import selectors
import socket
import struct
import time
from array import array
from typing import Callable, Dict, List, Optional, Tuple

from .agent import View

try:
    import numpy
except ImportError:  # sums are slower without
    numpy = None

HEADER = struct.Struct("<BQ")  # flags, length of what follows
HELLO = struct.Struct("<I")
LARGEST_HELLO = 64 << 10
POLL = 0.05  # seconds between two checks of whether to continue
CONNECT = 10.0  # seconds in which all members must have joined a view


class Interrupted(Exception):
    """A collective operation cannot complete: a member is gone, or the view has changed."""


class Listener:
    """Where other workers connect to this one. Connections for future views are kept until then."""

    def __init__(self, host: str = "127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.create_server((host, 0), family=family)
        self.socket.setblocking(False)
        self.waiting: Dict[Tuple[str, int], socket.socket] = {}

    @property
    def port(self) -> int:
        return self.socket.getsockname()[1]

    def accept(self) -> None:
        """Accept one connection and read which view it is for."""
        try:
            connection, _ = self.socket.accept()
        except (BlockingIOError, InterruptedError):
            return
        try:
            connection.settimeout(2.0)
            (length,) = HELLO.unpack(_read(connection, HELLO.size))
            if length > LARGEST_HELLO:
                raise ValueError("a greeting too long")
            hello = json.loads(_read(connection, length))
            key = (str(hello["history"]), int(hello["number"]))
        except (OSError, ValueError, KeyError, TypeError):
            connection.close()
            return
        old = self.waiting.pop(key, None)
        if old:
            old.close()
        self.waiting[key] = connection

    def take(self, view: View) -> Optional[socket.socket]:
        """The connection for a view, if it exists. Those for earlier views are closed."""
        for key in [k for k in self.waiting if k[0] == view.history and k[1] < view.number]:
            self.waiting.pop(key).close()
        return self.waiting.pop(view.key, None)

    def close(self) -> None:
        for connection in self.waiting.values():
            connection.close()
        self.socket.close()


class Group:
    """The members of one view, connected in a ring.

    All members call the same operations in the same order. An operation either raises Interrupted or has had
    every member's part. ``abandoned`` is asked several times a second whether to give up; ``timeout`` is how many
    seconds an operation may stand still.

    After an operation, ``flagged`` says whether any member had set ``flag`` before it. It is the same at all members.
    """

    def __init__(self, view: View, rank: int, listener: Listener, timeout: float = 300.0, abandoned: Callable[[], bool] = lambda: False):
        self.view, self.rank, self.size = view, rank, len(view.members)
        self.timeout, self.abandoned = timeout, abandoned
        self.flag = self.flagged = False
        self._next: Optional[socket.socket] = None
        self._previous: Optional[socket.socket] = None
        if self.size > 1:
            try:
                self._connect(listener)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the connections. The others' operations fail at once."""
        for connection in (self._next, self._previous):
            if connection:
                connection.close()
        self._next = self._previous = None

    def all_reduce(self, values) -> None:
        """Sum over all members, in place. ``values`` is a buffer of C floats or doubles: an array.array, a numpy array, …

        The sum is the same, bit by bit, at every member.
        """
        view = memoryview(values)
        if view.format not in ("f", "d") or not view.c_contiguous or view.readonly:
            raise TypeError(f"cannot sum a buffer of format {view.format!r}: it must be writable, contiguous, of floats or doubles")
        flat = view.cast("B").cast(view.format)
        bounds = [len(flat) * i // self.size for i in range(self.size + 1)]
        part = lambda i: flat[bounds[i % self.size]:bounds[i % self.size + 1]]  # noqa: E731
        self.flagged = self.flag
        for hop in range(self.size - 1):
            target = part(self.rank - hop - 1)
            _add(target, self._exchange(part(self.rank - hop).cast("B"), target.nbytes))
        for hop in range(self.size - 1):
            target = part(self.rank - hop)
            target.cast("B")[:] = self._exchange(part(self.rank - hop + 1).cast("B"), target.nbytes)

    def all_gather(self, data: bytes) -> List[bytes]:
        """Every member's value, by rank."""
        gathered: List[bytes] = [b""] * self.size
        gathered[self.rank] = bytes(data)
        self.flagged = self.flag
        for hop in range(self.size - 1):
            gathered[(self.rank - hop - 1) % self.size] = bytes(self._exchange(gathered[(self.rank - hop) % self.size]))
        return gathered

    def broadcast(self, data: bytes, source: int) -> bytes:
        """The value of the member with rank ``source``."""
        block, out = 1 << 18, bytearray()
        (length,) = struct.unpack("<Q", self.all_gather(struct.pack("<Q", len(data)) if self.rank == source else b"")[source])
        distance = (self.rank - source) % self.size
        blocks = (length + block - 1) // block
        for turn in range(blocks + self.size - 2 if self.size > 1 else 0):
            # In turn t, the member at distance d sends block t-d: the blocks travel one behind the other.
            def at(d):
                return turn - d if 0 <= turn - d < blocks and d < self.size - 1 else None

            mine, coming = at(distance), at(distance - 1) if distance else None
            whole = data if distance == 0 else out
            sent = bytes(whole[mine * block:(mine + 1) * block]) if mine is not None else b""
            got = self._exchange(sent)
            if coming is not None:
                out += got
        return bytes(data) if distance == 0 else bytes(out)

    def barrier(self) -> None:
        """Return when every member has called it."""
        self.all_gather(b"")

    def _connect(self, listener: Listener) -> None:
        hello = json.dumps({"history": self.view.history, "number": self.view.number}).encode()
        host, _, port = self.view.members[(self.rank + 1) % self.size].address.rpartition(":")
        deadline = time.monotonic() + CONNECT
        while not (self._next and self._previous):
            if not self._next:
                try:
                    self._next = socket.create_connection((host.strip("[]"), int(port)), timeout=1.0)
                    self._next.sendall(HELLO.pack(len(hello)) + hello)
                    self._next.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                except (OSError, ValueError):
                    self._next = None
            listener.accept()
            self._previous = listener.take(self.view)
            if not self._previous:
                _wait_readable(listener.socket, POLL)
                self._check(deadline)
        for connection in (self._next, self._previous):
            connection.setblocking(False)

    def _check(self, deadline: float) -> None:
        if self.abandoned():
            raise Interrupted(f"view {self.view.number} is over")
        if time.monotonic() > deadline:
            raise Interrupted(f"view {self.view.number} stood still for too long")

    def _exchange(self, out, expected: Optional[int] = None) -> memoryview:
        """Send to the next member while receiving from the previous one."""
        if self._next is None:
            raise Interrupted("the group is closed")
        try:
            return self._transfer(memoryview(out).cast("B"), expected)
        except OSError as error:
            raise Interrupted(f"a member of view {self.view.number} is gone: {error}") from error

    def _transfer(self, out: memoryview, expected: Optional[int]) -> memoryview:
        sending = [memoryview(HEADER.pack(self.flagged, len(out))), out]
        header, body, filled = bytearray(HEADER.size), None, 0
        sent = not _send(self._next, sending)
        received = False
        deadline = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._previous, selectors.EVENT_READ)
            if not sent:
                selector.register(self._next, selectors.EVENT_WRITE)
            while not (sent and received):
                ready = selector.select(POLL)
                if not ready:
                    self._check(deadline)
                    continue
                deadline = time.monotonic() + self.timeout
                for key, _ in ready:
                    if key.fileobj is self._next:
                        if not _send(self._next, sending):
                            sent = True
                            selector.unregister(self._next)
                        continue
                    into = memoryview(header if body is None else body)
                    count = self._previous.recv_into(into[filled:])
                    if count == 0:
                        raise ConnectionResetError("it hung up")
                    filled += count
                    if body is None and filled == HEADER.size:
                        flag, length = HEADER.unpack(header)
                        if expected is not None and length != expected:
                            raise ValueError(f"members do not agree on what they sum: {expected} bytes here, {length} at another")
                        self.flagged = self.flagged or bool(flag)
                        body, filled = bytearray(length), 0
                    if body is not None and filled == len(body):
                        received = True
                        selector.unregister(self._previous)
                        break
        return memoryview(body)


def _send(connection: socket.socket, parts: list) -> list:
    """Send what can be sent without blocking, and return the rest."""
    while parts:
        if not len(parts[0]):
            parts.pop(0)
            continue
        try:
            count = connection.send(parts[0])
        except (BlockingIOError, InterruptedError):
            break
        parts[0] = parts[0][count:]
    return parts


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise ConnectionResetError("it hung up")
        data += more
    return data


def _wait_readable(s: socket.socket, timeout: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(s, selectors.EVENT_READ)
        selector.select(timeout)


def _add(target: memoryview, data: memoryview) -> None:
    """Add the numbers of data to those of target, in place."""
    if numpy is not None:
        total = numpy.frombuffer(target, dtype=target.format)
        numpy.add(total, numpy.frombuffer(data, dtype=target.format), out=total)
    else:
        target[:] = array(target.format, map(operator.add, target, data.cast(target.format)))
