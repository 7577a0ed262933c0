# SPDX-License-Identifier: Apache-2.0
"""Learns the least of a parabola, and serves how it goes on port 8080.

Diwan reads the page some times a second while the program runs. So the program
serves nothing before it has a first value, and a moment longer than it learns.
"""

import argparse
import http.server
import os
import threading
import time

PAGE = """\
# HELP loss Distance from the least, in test and in training.
# TYPE loss gauge
loss{{phase="test"}} {test}
loss{{phase="train"}} {train}
# HELP accuracy How near that is.
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
# Where Pods share the machine's network, each has an address of its own.
server = http.server.ThreadingHTTPServer((os.environ.get("POD_IP", ""), 8080), Metrics)
threading.Thread(target=server.serve_forever, daemon=True).start()
for step in range(8):
    x -= args.lr * 2 * (x - 1)
    show(x)
    time.sleep(0.2)
time.sleep(2)
