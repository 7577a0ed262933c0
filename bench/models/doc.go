// SPDX-License-Identifier: Apache-2.0

// Command models measures `diwan model` beside modctl, KitOps' kit and oras: saving, pushing, pulling and exporting a
// model of many files, and a second version of which most files are the same, on the same loopback registry
// (the laptop's), each program with a registry and a home of its own.
//
//	go run ./bench/models -programs DIR > bench/results/models.md
//
// DIR has the programs modctl, kit and oras; diwan is built.
//
// The program compress.py beside it measures `diwan model compress` beside onnxruntime's quantizers.
package main
