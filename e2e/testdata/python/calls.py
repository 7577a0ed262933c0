# SPDX-License-Identifier: Apache-2.0
"""Runs a script of calls of an SDK, and holds that no method is left out."""

import os
import time

from kubernetes import config


def connect():
    """Finds the cluster in KUBECONFIG, or that of this Pod, and returns the path of the kubeconfig, or None."""
    path = os.environ.get("KUBECONFIG")
    config.load_kube_config(path) if path else config.load_incluster_config()
    return path


class Recorder:
    """Passes calls on to a client and remembers which of its methods were called."""

    def __init__(self, client):
        self._client, self._called = client, set()

    def __getattr__(self, name):
        self._called.add(name)
        return getattr(self._client, name)

    def never_called(self):
        """The public methods of the client that were not called, in order."""
        public = {n for n in dir(type(self._client)) if not n.startswith("_") and callable(getattr(self._client, n))}
        return sorted(public - self._called)


def eventually(what, within=60.0):
    """Waits until what() is true, and returns what it is. It may raise meanwhile."""
    deadline = time.monotonic() + within
    while True:
        try:
            if result := what():
                return result
            error = AssertionError("it is still false")
        except Exception as e:  # noqa: BLE001: whatever it is, it may pass
            error = e
        if time.monotonic() > deadline:
            raise error
        time.sleep(0.1)


def refused(kind, call, *args, **kwargs):
    """Holds that a call raises an error of a kind."""
    try:
        result = call(*args, **kwargs)
        result = list(result) if hasattr(result, "__next__") else result
    except kind:
        return
    raise AssertionError(f"{call} was not refused: {result}")
