# SPDX-License-Identifier: Apache-2.0
"""Minimizes a parabola, and serves its progress on port 8080.

Diwan scrapes the page several times a second while the program runs. So the program
starts serving when it has a first value, and keeps serving for a moment after training.
"""

import argparse
import http.server
import os
import threading
import time

PAGE = """\
# HELP loss Distance from the minimum, in test and in training.
# TYPE loss gauge
loss{{phase="test"}} {test}
loss{{phase="train"}} {train}
# HELP accuracy Closeness to the minimum.
# TYPE accuracy gauge
accuracy {accuracy}
"""


class Metrics(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(Metrics.page)))
        self.end_headers()
        self.wfile.write(Metrics.page)

    def log_message(self, *args):
        pass


def show(x):
    test = abs(x - 1)
    Metrics.page = PAGE.format(test=test, train=test / 2, accuracy=1 / (1 + test)).encode()


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
args = parser.parse_args()

x = 0.0
show(x)
# If Pods share the machine's network, each has its own address.
server = http.server.ThreadingHTTPServer((os.environ.get("POD_IP", ""), 8080), Metrics)
threading.Thread(target=server.serve_forever, daemon=True).start()
for step in range(8):
    x -= args.lr * 2 * (x - 1)
    show(x)
    time.sleep(0.2)
time.sleep(2)
