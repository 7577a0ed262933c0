// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from files and remembers where each came from.
//
// A file holds one or several YAML or JSON documents; a document holds one object or a List of
// objects. [Read] flattens all of that into [Object] values in the order in which they were
// written. Each keeps its file, document number and first line, so that later errors can refer
// to what the user wrote.
//
// Reading is strict where a mistake would otherwise go unnoticed (a duplicate key, an object
// without kind) and knows nothing about kinds, which are the API server's.
package manifest
