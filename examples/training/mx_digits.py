# SPDX-License-Identifier: Apache-2.0
"""A classifier of handwritten digits, trained with a parameter server in the roles that an MXJob gives to its Pods.

MXNet itself is retired; its roles and variables are what other programs with parameter servers go by. The server
keeps the weights. Each worker fetches them, computes the gradient on its part of the data and sends that back, at
its own pace. The scheduler waits for the workers.
"""

import json
import os
import time
from multiprocessing.connection import Client, Listener
from threading import Lock, Thread

import numpy

import digits

CONFIG = json.loads(os.environ["MX_CONFIG"])
KEY = b"mx-digits"
STEPS, RATE = 300, 0.5


def address(role, index=0):
    """Where a replica listens."""
    at = CONFIG["cluster"][role][index]
    return at["url"], at["port"]


def connect(role):
    """Connect to the first replica of a role, which may have yet to start."""
    while True:
        try:
            return Client(address(role), authkey=KEY)
        except OSError:
            time.sleep(0.1)


def probabilities(weights, pixels):
    scores = pixels @ weights
    exps = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def serve(listener):
    """Hand out the weights, and change them by each gradient that comes in."""
    weights, lock = numpy.zeros((65, 10)), Lock()

    def answer(connection):
        try:
            while True:
                gradient = connection.recv()
                with lock:
                    if gradient is not None:
                        weights[:] -= RATE * gradient
                    connection.send(weights)
        except EOFError:
            pass  # the worker is done

    while True:
        Thread(target=answer, args=[listener.accept()], daemon=True).start()


def work(index, workers):
    pixels, labels, test, answers = digits.load()
    pixels, labels = digits.shard(index, workers, pixels, labels)
    ones = lambda rows: numpy.hstack([rows, numpy.ones((len(rows), 1))])
    pixels, test, wanted = ones(pixels), ones(test), numpy.eye(10)[labels]
    server = connect("server")
    server.send(None)
    weights = server.recv()
    for _ in range(STEPS):
        server.send(pixels.T @ (probabilities(weights, pixels) - wanted) / len(pixels))
        weights = server.recv()
    accuracy = (probabilities(weights, test).argmax(axis=1) == answers).mean()
    print(f"worker {index} of {workers} has trained on {len(pixels)} rows: accuracy={accuracy:.4f}", flush=True)
    connect("scheduler").send(index)


def main():
    role, index = CONFIG["task"]["type"], CONFIG["task"]["index"]
    workers = len(CONFIG["cluster"]["worker"])
    if role == "worker":
        work(index, workers)
        return
    with Listener(("0.0.0.0", address(role)[1]), authkey=KEY) as listener:
        if role == "server":
            serve(listener)
        done = set()
        while len(done) < workers:
            with listener.accept() as connection:
                done.add(connection.recv())


if __name__ == "__main__":
    main()
