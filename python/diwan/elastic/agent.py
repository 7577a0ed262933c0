# SPDX-License-Identifier: Apache-2.0
"""A worker's connection to its agent: JSON Lines over a local socket."""

import json
import os
import select
import socket
import threading
import time
from typing import List, NamedTuple, Optional

BEAT = 1.0  # seconds between two heartbeats


class AgentError(Exception):
    """The agent rejects a request, or cannot be reached."""


class Member(NamedTuple):
    """One run of one worker. ``address`` is where others reach it, HOST:PORT."""

    id: str
    name: str
    address: str


class View(NamedTuple):
    """Who trains together. A member's rank is its index in ``members``; ``number`` 0 is no view."""

    history: str
    number: int
    members: List[Member]
    left: List[str]
    lost: List[str]

    @property
    def key(self):
        return (self.history, self.number)


class State(NamedTuple):
    """What an agent says: the latest view, this worker's rank in it (-1: none), and whether to train.

    ``waiting`` says why not.
    """

    view: View
    rank: int
    ready: bool
    waiting: str

    @staticmethod
    def parse(data: dict) -> "State":
        view = data.get("view") or {}
        members = [Member(m["id"], m.get("name", ""), m.get("address", "")) for m in view.get("members") or []]
        return State(
            View(view.get("history", ""), int(view.get("number", 0)), members, view.get("left") or [], view.get("lost") or []),
            int(data.get("rank", -1)), bool(data.get("ready")), data.get("waiting", ""),
        )


class Agent:
    """A worker's connection to its agent.

    ``address`` is where other workers reach this one, HOST:PORT; ``at`` is the agent's socket, that of the
    variable DIWAN_ELASTIC by default. A thread listens and gives signs of life. When the agent goes away, the
    worker attaches again as soon as there is one, as a new member.
    """

    def __init__(self, address: str, at: Optional[str] = None, slots: int = 1, patience: float = 30.0):
        self.address, self.slots = address, slots
        self.at = at or os.environ.get("DIWAN_ELASTIC") or "127.0.0.1:7947"
        self.member: Optional[Member] = None
        self._state: Optional[State] = None
        self._error: Optional[str] = None
        self._closed = False
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._socket = self._connect(time.monotonic() + patience)
        self._thread = threading.Thread(target=self._run, name="elastic agent", daemon=True)
        self._thread.start()

    @property
    def state(self) -> Optional[State]:
        """The latest state, None while there is no agent."""
        with self._changed:
            return self._state

    def wait(self, other_than: Optional[View] = None, timeout: Optional[float] = None, ready: bool = True) -> Optional[State]:
        """Block until a view holds that is not ``other_than``, and return the state; None after ``timeout`` seconds.

        With ``ready``, only a view to train in counts.
        """

        def good():
            s = self._state
            return self._error or self._closed or (
                s is not None and s.view.number > 0 and (s.ready or not ready) and (other_than is None or s.view.key != other_than.key))

        with self._changed:
            if not self._changed.wait_for(good, timeout):
                return None
            if self._error:
                raise AgentError(self._error)
            return None if self._closed else self._state

    def broken(self, view: View) -> None:
        """Report that the group of a view is broken: another view will follow."""
        self._send({"broken": {"history": view.history, "number": view.number}})

    def leave(self) -> None:
        """Report that this worker has finished, and close the connection."""
        self._closed = True  # before the agent hangs up, or the thread would attach again
        self._send({"leave": True})
        self.close()

    def close(self) -> None:
        """Close the connection. To the others this worker is gone."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._socket.close()

    def _connect(self, deadline: float) -> socket.socket:
        while True:
            try:
                if self.at.startswith("unix:"):
                    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    s.connect(self.at[len("unix:"):])
                else:
                    host, _, port = self.at.rpartition(":")
                    s = socket.create_connection((host, int(port)), timeout=5)
                    s.settimeout(None)
                s.sendall(_line({"join": {"address": self.address, "slots": self.slots}}))
                return s
            except (OSError, ValueError) as error:
                if self._closed or time.monotonic() > deadline:
                    raise AgentError(f"cannot reach the agent at {self.at}: {error}; does `diwan elastic agent` run?") from error
            time.sleep(0.2)

    def _run(self) -> None:
        while not self._closed:
            try:
                self._listen()
            except (OSError, ValueError, KeyError, TypeError):
                pass
            with self._changed:
                self._state = None
                self._changed.notify_all()
                if self._closed or self._error:
                    return
            try:
                replacement = self._connect(float("inf"))
            except AgentError:
                return
            with self._writing:
                self._socket.close()
                self._socket = replacement

    def _listen(self) -> None:
        buffer, beat = b"", time.monotonic()
        while not self._closed:
            readable, _, _ = select.select([self._socket], [], [], max(0.0, beat - time.monotonic()))
            if time.monotonic() >= beat:
                self._send({"alive": True})
                beat = time.monotonic() + BEAT
            if not readable:
                continue
            data = self._socket.recv(1 << 16)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, reply: dict) -> None:
        with self._changed:
            if reply.get("error"):
                self._error = reply["error"]
            elif reply.get("member"):
                m = reply["member"]
                self.member = Member(m["id"], m.get("name", ""), m.get("address", ""))
            elif reply.get("state"):
                self._state = State.parse(reply["state"])
            self._changed.notify_all()

    def _send(self, request: dict) -> None:
        try:
            with self._writing:
                self._socket.sendall(_line(request))
        except OSError:
            pass  # the thread notices, and connects again


def _line(request: dict) -> bytes:
    return json.dumps(request).encode() + b"\n"
