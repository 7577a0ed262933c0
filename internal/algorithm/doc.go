// SPDX-License-Identifier: Apache-2.0

// Package algorithm speaks Katib's gRPC services Suggestion and EarlyStopping:
// it writes experiments and trials as messages and reads them back, and asks
// the services that users run, so that an algorithm that the search library
// does not have can make an experiment's suggestions.
//
// A [Directory] knows which services there are, from the ConfigMap katib-config;
// a [Client] asks one. An answer is checked before anything is made of it: a
// service that answers what the experiment does not allow is wrong, and
// [ErrWrong] says so.
//
// Package [diwan.dev/diwan/internal/algorithm/server] is the other side: the
// search library as such a service.
package algorithm
