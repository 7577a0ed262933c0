# SPDX-License-Identifier: Apache-2.0
"""Uses a model registry as MLflow's users do; each answer is that of MLflow's own server, unless a comment says otherwise."""

import mlflow
from mlflow.exceptions import MlflowException

client = mlflow.MlflowClient()


def refused(call, code):
    try:
        call()
    except MlflowException as e:
        assert e.error_code == code, (e.error_code, e.message)
    else:
        raise AssertionError(f"{code} was expected")


# Models.
client.create_registered_model("churn", tags={"team": "growth"}, description="Who leaves.")
refused(lambda: client.create_registered_model("churn"), "RESOURCE_ALREADY_EXISTS")
refused(lambda: client.create_registered_model("no such name"), "INVALID_PARAMETER_VALUE")
refused(lambda: client.get_registered_model("nobody"), "RESOURCE_DOES_NOT_EXIST")
model = client.get_registered_model("churn")
assert (model.description, model.tags) == ("Who leaves.", {"team": "growth"}), model
client.update_registered_model("churn", description="Who leaves, and when.")
client.set_registered_model_tag("churn", "stage", "trial")
client.delete_registered_model_tag("churn", "team")
assert client.get_registered_model("churn").tags == {"stage": "trial"}

# Versions, by the client and by the function that users call.
first = client.create_model_version("churn", "oci://registry.example.com/churn@sha256:" + "1" * 64, run_id="abc", tags={"by": "hand"})
assert (first.version, first.status, first.run_id) in [("1", "READY", "abc"), (1, "READY", "abc")], first
second = mlflow.register_model("oci://registry.example.com/churn@sha256:" + "2" * 64, "churn")
assert str(second.version) == "2", second
third = mlflow.register_model("s3://bucket/new", "made-by-its-version")
assert str(third.version) == "1", third
assert client.get_model_version_download_uri("churn", "1").endswith("1" * 64)
client.update_model_version("churn", "1", description="The first.")
assert client.get_model_version("churn", "1").description == "The first."
client.set_model_version_tag("churn", "1", "checked", "yes")
assert client.get_model_version("churn", "1").tags == {"by": "hand", "checked": "yes"}
client.delete_model_version_tag("churn", "1", "by")

# Aliases and stages.
client.set_registered_model_alias("churn", "champion", "1")
assert str(client.get_model_version_by_alias("churn", "champion").version) == "1"
assert client.get_registered_model("churn").aliases == {"champion": "1"}, client.get_registered_model("churn").aliases
client.delete_registered_model_alias("churn", "champion")
refused(lambda: client.get_model_version_by_alias("churn", "champion"), "INVALID_PARAMETER_VALUE")
client.transition_model_version_stage("churn", "1", "Production")
client.transition_model_version_stage("churn", "2", "Production", archive_existing_versions=True)
assert client.get_model_version("churn", "1").current_stage == "Archived"
assert [str(v.version) for v in client.get_latest_versions("churn", stages=["Production"])] == ["2"]

# Searches.
assert {m.name for m in client.search_registered_models()} == {"churn", "made-by-its-version"}, client.search_registered_models()
assert [m.name for m in client.search_registered_models("name LIKE 'chu%'")] == ["churn"]
assert [str(v.version) for v in client.search_model_versions("name = 'churn'", order_by=["version_number ASC"])] == ["1", "2"]
assert [str(v.version) for v in client.search_model_versions("run_id = 'abc'")] == ["1"]
page = client.search_registered_models(max_results=1)
assert len(page) == 1 and page.token, page
refused(lambda: client.search_registered_models("name ~ 'x'"), "INVALID_PARAMETER_VALUE")

# Ends. The name of an object of Kubernetes never changes.
refused(lambda: client.rename_registered_model("made-by-its-version", "renamed"), "INVALID_PARAMETER_VALUE")
client.delete_model_version("churn", "1")
refused(lambda: client.get_model_version("churn", "1"), "RESOURCE_DOES_NOT_EXIST")
client.delete_registered_model("made-by-its-version")
refused(lambda: client.get_registered_model("made-by-its-version"), "RESOURCE_DOES_NOT_EXIST")
print("all is well")
