# SPDX-License-Identifier: Apache-2.0
"""Stands in for the programs of the training operator's examples.

It trains nothing: the replicas of a job meet by what their environment tells them, as their framework would have
them do, and each prints how many it met. The first replica listens, the others come to it.
"""

import json
import os
import signal
import socket
import sys
import time


def place():
    """Whether this replica is the first, how many there are, and where the first listens."""
    env = os.environ
    if "TF_CONFIG" in env:
        config = json.loads(env["TF_CONFIG"])
        tasks = [(kind, i, at) for kind in ("chief", "worker", "ps") for i, at in enumerate(config["cluster"].get(kind, []))]
        me = (config["task"]["type"], config["task"]["index"])
        assert me in [task[:2] for task in tasks], f"{me} is not in {tasks}"
        return me == tasks[0][:2], len(tasks), tasks[0][2]
    if "COORDINATOR_ADDRESS" in env:
        return env["PROCESS_ID"] == "0", int(env["NUM_PROCESSES"]), f"{env['COORDINATOR_ADDRESS']}:{env['COORDINATOR_PORT']}"
    if "PADDLE_MASTER" in env:
        return "POD_IP_DUMMY" in env, int(env["PADDLE_NNODES"]), env["PADDLE_MASTER"]
    if "MASTER_ADDR" in env:
        return env["RANK"] == "0", int(env["WORLD_SIZE"]), f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
    return True, 1, "localhost:0"


def listen(port, others):
    """Waits for the others, and tells them that all are there."""
    with socket.create_server(("0.0.0.0", port)) as server:
        met = [server.accept()[0] for _ in range(others)]
    for connection in met:
        connection.sendall(b"all")
        connection.close()


def come(host, port):
    """Comes to the first replica, which may not listen yet."""
    for _ in range(1200):
        try:
            with socket.create_connection((host, port), 5) as connection:
                connection.settimeout(60)
                if connection.recv(3) == b"all":
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"nobody is at {host}:{port}")


def main():
    if "OMPI_COMM_WORLD_SIZE" in os.environ:  # mpirun has brought them together
        print(f"met={os.environ['OMPI_COMM_WORLD_SIZE']}")
        return
    first, replicas, at = place()
    host, port = at.rsplit(":", 1)
    if first:
        listen(int(port), replicas - 1)
    else:
        come(host, int(port))
    print(f"met={replicas}", flush=True)
    if '"type":"ps"' in os.environ.get("TF_CONFIG", "").replace(" ", ""):
        signal.pause()  # a parameter server serves until it is stopped


main()
