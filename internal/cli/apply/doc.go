// SPDX-License-Identifier: Apache-2.0

// Package apply brings objects of a manifest into a cluster by server-side apply.
//
// Everything that is particular to a kind is the API server's business: an [Applier] finds the
// resource of a kind by discovery, sends the object as it was written, and turns what the server
// objects to into an [Error] that names the file, the object, the fields and what to do.
//
// The order is that of the manifest, but for Namespaces and CustomResourceDefinitions, which come
// first: the others may need them.
package apply
