// SPDX-License-Identifier: Apache-2.0

// Package trialtemplate turns an experiment's trial template into run objects,
// and reads from a run object how it went.
//
// A template is any Kubernetes object in which ${trialParameters.<name>} stands
// for values. Each name is declared in trialParameters with what it refers to:
// a parameter of the search space, or a property of the trial such as
// ${trialSpec.Name}.
//
//	Load ──▶ Template ──Render(trial, assignments)──▶ Trial.spec.runSpec
//	RunObject(trial) ──▶ the object to create, labelled for the collector
//	Evaluate(object, conditions) ──▶ Running, Succeeded or Failed, and why
//
// A template comes in one of two forms, which differ in where a value lands:
//
//   - spec.trialTemplate.trialSpec is a tree. A value becomes part of the
//     string that holds its placeholder, whatever characters it has, and never
//     changes the tree's shape or a string's type.
//   - A ConfigMap holds text. A value is put into the text before it is read
//     as YAML, so that `parallelism: ${trialParameters.n}` becomes a number.
//
// In both, placeholders are replaced once: a value that looks like a
// placeholder stays as it is.
package trialtemplate
