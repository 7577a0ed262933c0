# SPDX-License-Identifier: Apache-2.0
"""Stands in for the custom metrics collector of Katib's example.

It takes the same options, reads the file that the training writes, and reports
what is in it to the DB manager when it is asked to end, in one call. The
process is killed if it takes longer than the Pod's grace.
"""

import argparse
import os
import re
import signal
import threading

import kubeflow.katib as katib

parser = argparse.ArgumentParser()
parser.add_argument("-m", dest="metric", required=True)
parser.add_argument("-s", dest="server", required=True)
parser.add_argument("-path", required=True)
args = parser.parse_args()

trial = os.environ["KATIB_TRIAL_NAME"]
if not os.environ["TrialNamePrefix"].startswith(trial):
    raise SystemExit(f"the Pod is {os.environ['TrialNamePrefix']}, the trial {trial}")
ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
print("waiting for the end of", trial, flush=True)
while not ended.wait(1):
    pass
with open(args.path) as file:
    values = re.findall(r"metricName: %s, metricValue: ([-+.\w]+)" % re.escape(args.metric), file.read())
for value in values:
    katib.report_metrics({args.metric: value}, db_manager_address=args.server)
print("reported", values, flush=True)
