// SPDX-License-Identifier: Apache-2.0

// Package v1alpha2 has the kind JobSet of the group jobset.x-k8s.io: several
// batch Jobs managed as a unit.
//
//	JobSet ──owns──▶ Job <jobset>-<replicated job>-<index>  ──▶ Pods
//	       ──owns──▶ Service <jobset>, by which Pods have names
//
// A replicated job is a template of Jobs; it may wait for others to be ready or
// complete. The set succeeds and fails as a whole: the success policy says which
// Jobs must succeed, the failure policy what happens when a Job fails. A restart
// recreates all Jobs.
//
// Field names, labels, reasons and names of child objects are those of JobSet
// v0.12.0 (kubernetes-sigs/jobset), so that its manifests work unchanged and
// either controller can do the work. SetDefaults and Validate are pure functions.
//
// +kubebuilder:object:generate=true
// +groupName=jobset.x-k8s.io
package v1alpha2
