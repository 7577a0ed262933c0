# SPDX-License-Identifier: Apache-2.0
"""Stands in for the LightGBM program of Katib's example of an XGBoostJob: it meets its workers, and reports as LightGBM does."""

import os
import socket
import sys

options = dict(o.lstrip("-").split("=", 1) for o in sys.argv[1:])
rank, world, port = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["MASTER_PORT"])
assert len(os.environ["WORKER_ADDRS"].split(",")) == world - 1 and port == 9991
if rank > 0:
    for _ in range(100):
        try:
            socket.create_connection((os.environ["MASTER_ADDR"], port), 1).close()
            sys.exit(0)
        except OSError:
            import time
            time.sleep(0.2)
    sys.exit(137)
with socket.create_server(("0.0.0.0", port)) as server:
    for _ in range(world - 1):
        server.accept()[0].close()
for i in range(1, 4):
    auc = 0.7 + float(options["learning_rate"]) + i / 100
    print(f"[LightGBM] [Info] Iteration:{i}, training auc : {auc + 0.01:.6f}")
    print(f"[LightGBM] [Info] Iteration:{i}, valid_1 auc : {auc:.6f}", flush=True)
