# SPDX-License-Identifier: Apache-2.0
"""A worker that writes what it does into a diary. arguments: python/ and the diary."""

import os
import sys
import time

sys.path.insert(0, sys.argv[1])
from diwan.asktell import Experiment  # noqa: E402


def note(text):
    with open(sys.argv[2], "a") as diary:
        diary.write(f"{text} {trial.name} {os.getpid()}\n")


for trial in Experiment("killed").trials():
    with trial:
        note("begin")
        for step in range(4):
            time.sleep(0.05)
            trial.report(loss=trial.parameters["x"] + 3 - step, step=step)
        trial.complete(loss=trial.parameters["x"])
        note("end")
