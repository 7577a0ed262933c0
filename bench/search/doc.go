// SPDX-License-Identifier: Apache-2.0

// Command search measures the search library beside its peers: on the same
// problems, with the same budgets and seeds, in one run.
//
//	go run ./bench/search -problems bbob -dims 5 -optimisers ours/tpe,optuna/tpe -budget 100 -seeds 5
//
// README.md says what there is to choose from, and how the tables are made.
package main
