# SPDX-License-Identifier: Apache-2.0
"""Tune programs outside Kubernetes: ask Diwan for trials, and report their results.

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
    """The server rejected a call. `code` is the name of the gRPC status code."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Lost(Error):
    """This process no longer has the trial: drop it."""


class Client:
    """A client of the server at `url` that retries for `patience` seconds.

    If url is empty, it is $DIWAN_ASK_URL, or that of the Diwan running on
    $DIWAN_HOME or on the default home, or port 6790 of this machine. `token` is a
    bearer token, by default $DIWAN_TOKEN. The url of a home comes with the
    home's own token.
    """

    def __init__(self, url="", token="", patience=300.0):
        self.url = url
        self.token = token or os.environ.get("DIWAN_TOKEN", "")
        self.patience = patience

    def call(self, method, **request):
        """Calls a method with the fields of its request; returns the reply."""
        body, give_up, pause = json.dumps(request).encode(), time.monotonic() + self.patience, 0.05
        while True:
            url, token = self._server()
            try:
                return _post(f"{url}/v1/{method}", token, body)
            except (urllib.error.URLError, http.client.HTTPException, OSError) as e:
                if isinstance(e, urllib.error.HTTPError):
                    error = _read(e)
                    restarted = e.code == 401 and self._server() != (url, token)
                    if e.code not in (502, 503, 504) and not restarted:
                        raise error from None
                else:
                    error = e
                if time.monotonic() > give_up:
                    raise error from None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _server(self):
        """Returns the url and the token, which change when a laptop's server restarts."""
        if url := self.url or os.environ.get("DIWAN_ASK_URL", ""):
            return url.rstrip("/"), self.token
        home = _home()
        # The token first: it is written last, so it never belongs to an earlier start's url.
        token, url = _line(home / "token"), _line(home / "ask-url")
        return url or DEFAULT_URL, self.token or (token if url else "")


def _post(url, token, body):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=90) as reply:
        return json.load(reply)


def _home():
    """Returns the home of this user's Diwan."""
    if home := os.environ.get("DIWAN_HOME", ""):
        return pathlib.Path(home)
    data = pathlib.Path(os.environ.get("XDG_DATA_HOME", ""))
    return (data if data.is_absolute() else pathlib.Path.home() / ".local" / "share") / "diwan"


def _line(path):
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


def _read(e):
    try:
        answer = json.load(e)
        code, message = answer["code"], answer["message"]
    except (ValueError, KeyError, OSError):
        code, message = "Unknown", f"{e}"
    return (Lost if code == "FailedPrecondition" else Error)(code, message)


class Experiment:
    """An experiment to ask for trials.

    With a spec, as in an Experiment's manifest, it is created if it does not
    exist. The trialTemplate may be omitted.
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
        """Returns a trial, or None if there is none within `wait` seconds.

        Then `self.done` says whether there will be no more trials.
        """
        reply = self.client.call(
            "ask", namespace=self.namespace, experiment=self.name, request_id=uuid.uuid4().hex,
            worker=worker or f"{socket.gethostname()}/{os.getpid()}", wait_seconds=wait)
        self.done = reply["done"]
        return Trial(self.client, reply["trial"]) if reply["trial"] else None

    def get(self):
        """Returns the experiment's progress, and under "best" the best trial."""
        return self.client.call("get", namespace=self.namespace, experiment=self.name)


class Trial:
    """A trial that this process has leased, with the values of its `parameters`.

    As a context manager it renews its lease while the context lasts, even without
    reports, and an exception makes it fail.
    """

    def __init__(self, client, trial):
        self.name, self.parameters, self.attempt = trial["name"], trial["parameters"], trial["attempt"]
        self._client, self._next, self._ended, self.ended = client, 0, threading.Event(), False
        self._lease = {"namespace": trial["namespace"], "trial": trial["name"], "lease": trial["lease"]}
        self._pause = trial["lease_seconds"] / 3

    def report(self, **metrics):
        """Reports metrics. Returns whether to stop the trial, for example because it
        is unpromising. Then complete it."""
        reply = self._client.call("report", **self._lease, sequence=self._next, metrics=metrics)
        self._next += 1
        return reply["stop"]

    def complete(self, **metrics):
        """Completes the trial, with its last metrics."""
        self._end(metrics=metrics)

    def fail(self, message):
        """Gives the trial back as failed: it cannot be run."""
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
                pass  # retried until the lease expires

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
