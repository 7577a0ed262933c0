// SPDX-License-Identifier: Apache-2.0

// Package tuning is the domain that searches hyperparameters and architectures.
//
//	Experiment ──asks──▶ Suggestion     how many assignments are wanted
//	Suggestion ──answers─▶ Experiment   the assignments
//	Experiment ──creates─▶ Trials       one of each assignment
//	Trial      ──creates─▶ run object   and reports how it went
//
// Each reconciler reads a cache, decides by a pure function, and writes; each
// object's status has one writer. Everything that is kept in memory can be
// built again from the API and the observation store, so that the process may
// be killed at any instruction. None of the reconcilers knows where it runs.
package tuning
