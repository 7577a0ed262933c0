// SPDX-License-Identifier: Apache-2.0

// Package apply applies the objects of a manifest to a cluster by server-side apply.
//
// Everything specific to a kind is left to the API server: an [Applier] finds the resource of a
// kind by discovery, sends the object as written, and turns the server's objections into an
// [Error] that names the file, the object, the fields and what to do.
//
// The order is that of the manifest, except for Namespaces and CustomResourceDefinitions, which
// come first: the others may need them.
package apply
