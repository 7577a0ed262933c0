// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kinds of the group models.diwan.dev: what a namespace knows
// of its models.
//
//	Model ◀──spec.model── ModelVersion ──spec.uri──▶ files, usually in an OCI registry
//	   └──spec.aliases──▶ the number of a version
//
// A Model is a name under which versions are kept. A ModelVersion is one of them: where
// its files are, what they are, and what made them. Files are never in an object; what
// describes them never changes.
//
// +kubebuilder:object:generate=true
// +groupName=models.diwan.dev
package v1alpha1
