// SPDX-License-Identifier: Apache-2.0

// Package mlflow answers the REST API of MLflow's model registry from Models and
// ModelVersions, so that MLflow's clients work on them:
//
//	registered model   a Model
//	model version      a ModelVersion; its source is spec.uri
//	alias, tag, stage  spec.aliases, spec.tags, spec.stage
//
// Every call goes to the Kubernetes API with the caller's own rights. Nothing is kept
// here. The API is that of mlflow/protos/model_registry.proto, version 2.0; what it
// allows and a Kubernetes object does not, such as a blank in a name, is refused with
// words.
package mlflow
