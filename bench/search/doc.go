// SPDX-License-Identifier: Apache-2.0

// Command search benchmarks the search library against its peers: on the same problems, with the
// same budgets and seeds, in one run.
//
//	go run ./bench/search -problems bbob -dims 5 -optimizers ours/tpe,optuna/tpe -budget 100 -seeds 5
//
// README.md describes the options, and how the tables are made.
package main
