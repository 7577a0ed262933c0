// SPDX-License-Identifier: Apache-2.0

// Package trialtemplate renders an experiment's trial template to run objects,
// and reads a run object's outcome.
//
// A template is any Kubernetes object with ${trialParameters.<name>} in place of
// values. Each name is declared in trialParameters with what it refers to: a
// parameter of the search space, or a property of the trial such as
// ${trialSpec.Name}.
//
//	Load ──▶ Template ──Render(trial, assignments)──▶ Trial.spec.runSpec
//	RunObject(trial) ──▶ the object to create, labeled for the collector
//	Evaluate(object, conditions) ──▶ Running, Succeeded or Failed, and why
//
// A template has one of two forms, which differ in how values are substituted:
//
//   - spec.trialTemplate.trialSpec is a tree. A value becomes part of the
//     string that holds its placeholder, whatever characters it has, and never
//     changes the tree's shape or a string's type.
//   - A ConfigMap holds text. A value is put into the text before it is read
//     as YAML, so that `parallelism: ${trialParameters.n}` becomes a number.
//
// Experiments can use ConfigMaps in their own namespace, and those in the
// operator's that are labeled as templates: see [Library]. Errors never quote a
// ConfigMap.
//
// In both, placeholders are replaced once: a value that looks like a placeholder
// is left as it is.
package trialtemplate
