// SPDX-License-Identifier: Apache-2.0

// Package suggestion reconciles Suggestions: it fulfills an experiment's
// request for parameter assignments with its search algorithm.
//
// # Everything can be made again
//
// Suggestion i is a pure function of the algorithm's seed, the results of the
// earlier suggestions, and i. The seed is in the Suggestion's status before the
// first assignment is, and the earlier suggestions are Trials. So the sampler
// that is kept in memory between requests is a cache; after a restart it is
// rebuilt and continues as if nothing had happened.
//
// # A bounded object
//
// status.suggestionCount counts all suggestions ever made. status.suggestions
// has the newest ones and those older ones whose trial has not ended: what the
// experiment may still need to create a trial. The rest can be read from the
// trials. In Katib the list has everything and outgrows etcd's limit at about
// twenty thousand trials.
package suggestion
