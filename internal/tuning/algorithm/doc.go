// SPDX-License-Identifier: Apache-2.0

// Package algorithm is a client of Katib's gRPC services Suggestion and
// EarlyStopping: it converts experiments and trials to messages and back, and calls
// the services that users run, so that an algorithm outside the search library can
// make an experiment's suggestions.
//
// A [Directory] lists the services, from the ConfigMap katib-config; a [Client]
// calls one. A response is checked before anything is created from it: a response
// that the experiment does not allow is an error, [ErrWrong].
//
// Package [diwan.dev/diwan/internal/tuning/algorithm/server] is the other side: the
// search library as such a service.
package algorithm
