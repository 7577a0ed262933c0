// SPDX-License-Identifier: Apache-2.0

// Package onnx reads, changes and writes ONNX models (a ModelProto of
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3) without generated code.
//
// Graphs are held in memory, weights are not: a tensor's values are read from where they are
// stored, in the model's file or beside it, when they are written or asked for. Fields that
// the package does not know are written as they were read.
package onnx
