// SPDX-License-Identifier: Apache-2.0

// Package reconciling has what the reconcilers of all domains share.
//
//   - [NewCache] caches the objects that a reconciler owns, selected by a label.
//   - [WriteTracker] detects a cached object that is older than the reconciler's own
//     last write, so that no decision is made twice.
//   - [ExceedsQuota] and related functions parse why the API server rejected an
//     object, and [QuotaBackoff] says when to retry.
//   - [Events] records Kubernetes events within a budget per namespace.
//   - [ControllerOptions] are the queue settings of every reconciler.
package reconciling
