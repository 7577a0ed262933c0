// SPDX-License-Identifier: Apache-2.0

// Package signature reads what a model file or folder holds: its format, inputs
// and outputs, parameters, size, and what else the format tells cheaply. It needs
// no framework, and nothing of a model is executed: pickles are walked opcode by
// opcode and never loaded, archives are read in place and never unpacked.
//
// [Read] detects the format and returns a [Signature], which is plain data with
// JSON tags. Each format has a file of its own.
//
// # Hostile files
//
// A model comes from anywhere, so every count, length, offset and dimension in it
// is checked before it is used. Weights are skipped, not read. What is held in
// memory, unpacked, nested or visited has a bound in [Limits]; beyond it reading
// ends with a [LimitError]. Everything else that is wrong with a file is an
// [Error], which names the file and the place in it. Only regular files below the
// root are opened: links that leave it, pipes and devices are refused.
package signature
