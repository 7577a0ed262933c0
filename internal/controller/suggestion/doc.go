// SPDX-License-Identifier: Apache-2.0

// Package suggestion reconciles Suggestions: it answers an experiment's request
// for assignments of parameters with those that its search algorithm makes.
//
// # Everything can be made again
//
// Suggestion i is a pure function of the algorithm's seed, of what is known of
// the earlier suggestions, and of i. The seed is in the Suggestion's status
// before the first assignment is, and the earlier suggestions are Trials. So
// the sampler that is kept in memory between two requests is a cache; after a
// restart it is built again and goes on as if nothing had happened.
//
// # A bounded object
//
// status.suggestionCount counts all suggestions ever made. status.suggestions
// holds the newest ones and, of the older, those whose trial has not ended:
// what the experiment may still need to create a trial. The rest can be read
// from the trials. In Katib the list holds everything and outgrows etcd's limit
// at some twenty thousand trials.
package suggestion
