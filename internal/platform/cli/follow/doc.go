// SPDX-License-Identifier: Apache-2.0

// Package follow watches objects that come to an end (searches with their trials, training jobs, Jobs,
// Pods) and tells what it sees as facts for package progress.
//
// A [Kind] says how objects of one kind are followed. Those of Kubernetes itself are here; a domain has
// those of its own. [Kinds.Watch] starts informers and returns at once; they list, watch and, when a
// connection breaks, list again, so that no change that lasts is missed. Each change becomes one [Fact]
// on a channel; [Fact.Apply] feeds it to the model of the object. Every fact is complete in itself:
// applying it twice, or skipping one that is followed by a newer, does no harm.
package follow
