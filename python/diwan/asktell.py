# SPDX-License-Identifier: Apache-2.0
"""Tune what Kubernetes does not run: ask Diwan for trials, and tell how they go.

    experiment = Experiment("my-experiment")
    for trial in experiment.trials():
        with trial:
            trial.complete(loss=train(**trial.parameters))

Any number of processes, on any machines that reach the server, may do so at the
same time. A trial whose process dies goes to another one. Calls are sent again
while the server is away, and are done once. Only the standard library is used.
"""

import http.client
import json
import os
import pathlib
import socket
import threading
import time
import urllib.error
import urllib.request
import uuid

DEFAULT_URL = "http://127.0.0.1:6790"


class Error(Exception):
    """The server refused a call. `code` is gRPC's name of the reason."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Lost(Error):
    """The trial is no longer this process's: drop it."""


class Client:
    """Speaks to the server at `url`, and tries again for `patience` seconds.

    Where url is empty it is that of $DIWAN_ASK_URL, of the Diwan that runs on
    $DIWAN_HOME, or port 6790 of this machine. `token` is a bearer token, which
    the owner of a laptop does not need; by default that of $DIWAN_TOKEN.
    """

    def __init__(self, url="", token="", patience=300.0):
        self.url = url
        self.token = token or os.environ.get("DIWAN_TOKEN", "")
        self.patience = patience

    def call(self, method, **request):
        """Calls a method with the fields of its request; returns the reply."""
        body, give_up, pause = json.dumps(request).encode(), time.monotonic() + self.patience, 0.05
        while True:
            try:
                return self._post(method, body)
            except (urllib.error.URLError, http.client.HTTPException, OSError) as e:
                if isinstance(e, urllib.error.HTTPError):
                    error = _read(e)
                    if e.code not in (502, 503, 504):
                        raise error from None
                else:
                    error = e
                if time.monotonic() > give_up:
                    raise error from None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _post(self, method, body):
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        request = urllib.request.Request(f"{self.url or _find()}/v1/{method}", body, headers)
        with urllib.request.urlopen(request, timeout=90) as reply:
            return json.load(reply)


def _find():
    """Returns where the server is, which may change when it starts again."""
    if "DIWAN_ASK_URL" in os.environ:
        return os.environ["DIWAN_ASK_URL"].rstrip("/")
    if "DIWAN_HOME" in os.environ:
        try:
            return pathlib.Path(os.environ["DIWAN_HOME"], "ask-url").read_text().strip() or DEFAULT_URL
        except FileNotFoundError:
            pass
    return DEFAULT_URL


def _read(e):
    try:
        answer = json.load(e)
        code, message = answer["code"], answer["message"]
    except (ValueError, KeyError, OSError):
        code, message = "Unknown", f"{e}"
    return (Lost if code == "FailedPrecondition" else Error)(code, message)


class Experiment:
    """An experiment whose trials are asked for.

    Given a spec, as of an Experiment's manifest, it is created if it is not
    there. Its trialTemplate may be left out.
    """

    def __init__(self, name, spec=None, namespace="", client=None):
        self.name, self.namespace, self.client = name, namespace, client or Client()
        if spec is not None:
            self.client.call("create", namespace=namespace, name=name, spec=spec)

    def trials(self, worker=""):
        """Yields trials, one at a time, until the experiment has ended."""
        while (trial := self.ask(worker, wait=30)) is not None or not self.done:
            if trial is not None:
                yield trial

    def ask(self, worker="", wait=0):
        """Returns a trial, or None where there is none within `wait` seconds.

        Then `self.done` says whether there will be none any more.
        """
        reply = self.client.call(
            "ask", namespace=self.namespace, experiment=self.name, request_id=uuid.uuid4().hex,
            worker=worker or f"{socket.gethostname()}/{os.getpid()}", wait_seconds=wait)
        self.done = reply["done"]
        return Trial(self.client, reply["trial"]) if reply["trial"] else None

    def get(self):
        """Returns how far the experiment is, and under "best" the best trial."""
        return self.client.call("get", namespace=self.namespace, experiment=self.name)


class Trial:
    """A trial that this process has, with the values of its `parameters`.

    As a context it is kept while the context lasts, also where nothing is
    reported for long, and an exception makes it fail.
    """

    def __init__(self, client, trial):
        self.name, self.parameters, self.attempt = trial["name"], trial["parameters"], trial["attempt"]
        self._client, self._next, self._ended, self.ended = client, 0, threading.Event(), False
        self._lease = {"namespace": trial["namespace"], "trial": trial["name"], "lease": trial["lease"]}
        self._pause = trial["lease_seconds"] / 3

    def report(self, **metrics):
        """Reports metrics. Returns whether the trial is to end here: its values
        are not worth going on. Then complete it."""
        reply = self._client.call("report", **self._lease, sequence=self._next, metrics=metrics)
        self._next += 1
        return reply["stop"]

    def complete(self, **metrics):
        """Gives the trial back, with its last metrics."""
        self._end(metrics=metrics)

    def fail(self, message):
        """Gives the trial back: it cannot be run."""
        self._end(failed=True, message=str(message)[:250])

    def _end(self, **outcome):
        self._ended.set()
        self._client.call("complete", **self._lease, **outcome)
        self.ended = True

    def _keep(self):
        while not self._ended.wait(self._pause):
            try:
                self._client.call("report", **self._lease)
            except Lost:
                return  # the next report or complete raises it
            except (Error, OSError, http.client.HTTPException):
                pass  # tried again, until the lease has run out

    def __enter__(self):
        threading.Thread(target=self._keep, daemon=True).start()
        return self

    def __exit__(self, kind, error, _):
        self._ended.set()
        if self.ended or kind is Lost:
            return kind is Lost  # another process has the trial
        try:
            if kind is None:
                self.complete()
            elif issubclass(kind, Exception):
                self.fail(f"{kind.__name__}: {error}")
        except Lost:
            pass  # as above
        return False
