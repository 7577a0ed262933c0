// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes objects from files and remembers where each came from.
//
// A file holds one or several YAML or JSON documents; a document holds one object or a List of
// objects. [Read] flattens all of that into [Object] values in the order in which they were
// written. Each keeps its file, the number of its document and its first line, so that whatever
// goes wrong later can be told in terms of what the user wrote.
//
// Reading is strict where a mistake would otherwise go unseen (a key that is given twice, an
// object without kind) and knows nothing about kinds: the API server knows those.
package manifest
