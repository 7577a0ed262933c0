# SPDX-License-Identifier: Apache-2.0
"""A custom search algorithm as a Katib algorithm service.

It halves the distance to the best trial: the first points are random, and each
later one lies between the best so far and a random point, closer each time.

    pip install kubeflow-katib grpcio
    python service.py 127.0.0.1:7000
"""

import random
import sys
from concurrent import futures

import grpc
from kubeflow.katib import katib_api_pb2 as api
from kubeflow.katib import katib_api_pb2_grpc as services


class Halving(services.SuggestionServicer):
    def ValidateAlgorithmSettings(self, request, context):
        for parameter in request.experiment.spec.parameter_specs.parameters:
            if parameter.parameter_type != api.DOUBLE:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"parameter {parameter.name} is not a double")
        return api.ValidateAlgorithmSettingsReply()

    def GetSuggestions(self, request, context):
        spec = request.experiment.spec
        best = best_trial(spec.objective, request.trials)
        begun = request.total_request_number - request.current_request_number
        reply = api.GetSuggestionsReply()
        for i in range(request.current_request_number):
            # Stateless: the same request gets the same answer.
            chance = random.Random(f"{request.experiment.name} {begun + i}")
            suggestion = reply.parameter_assignments.add()
            for parameter in spec.parameter_specs.parameters:
                space = parameter.feasible_space
                value = chance.uniform(float(space.min), float(space.max))
                if best:
                    value = best[parameter.name] + (value - best[parameter.name]) * 0.5 ** (1 + len(request.trials) // 5)
                suggestion.assignments.add(name=parameter.name, value=str(value))
        return reply


def best_trial(objective, trials):
    """The parameters of the best finished trial, by name."""
    best, score = None, None
    sign = -1 if objective.type == api.MAXIMIZE else 1
    for trial in trials:
        for metric in trial.status.observation.metrics:
            if trial.status.condition != api.TrialStatus.SUCCEEDED or metric.name != objective.objective_metric_name:
                continue
            value = sign * float(metric.value)
            if score is None or value < score:
                best, score = {a.name: float(a.value) for a in trial.spec.parameter_assignments.assignments}, value
    return best


def main(address):
    server = grpc.server(futures.ThreadPoolExecutor())
    services.add_SuggestionServicer_to_server(Halving(), server)
    if not server.add_insecure_port(address):
        sys.exit(f"cannot listen at {address}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
