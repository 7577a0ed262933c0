// SPDX-License-Identifier: Apache-2.0

// Package imagestore keeps OCI images in a directory of a laptop's home: it pulls them from
// registries, loads and saves archives, unpacks layers for overlayfs, and removes what is no longer
// used.
//
// # Directory
//
//	store.json       how layers are marked; written once
//	lock             held for moments, to change what refers to what
//	images/DIGEST    an image's record by the digest of its manifest; its time is the last use
//	names/HASH       a name and the image that it means
//	blobs/DIGEST     manifests and configurations
//	layers/CHAIN/    a layer: root/, layer.json, and a recipe or the compressed blob
//	work/CHAIN/      a layer on its way: the partial blob, and layer/ while it is unpacked
//	leases/          what running pulls need, so that nobody sweeps it
//	trash/           on its way out
//
// A layer is stored once per chain ID, that is per content of it and of all layers below it, since
// hard links and directories without an entry depend on those. Images with common lowest layers share
// them.
//
// # What is kept of a layer
//
// The unpacked directory, and a recipe: all of its tar stream but the contents of files, compressed.
// From both, [Store.Save] writes the stream again byte by byte and checks its digest, so the compressed
// blob need not be kept. It is kept where that does not work: a stream that contains a name twice, or
// directories that an ordinary user cannot read.
//
// # Crashes
//
// Layers and records appear by a rename, a layer after its file system was synced, a record after all
// of its layers. Whatever is killed in between leaves only partial blobs, which the next pull resumes
// where they end, and garbage, which [Open] and [Store.Prune] sweep. Locks are of the kernel (flock)
// and end with their holder, so any number of processes may use one store.
//
// # Names and IDs
//
// An image is identified by the digest of its manifest. Its [Image.ID] is repository@digest, with the
// digest that the registry gave for the name: the index's where there is one, as CRI runtimes report.
// Both digests, and the name, find the image.
//
// # Trust
//
// Registries and archives are hostile. Manifests, configurations, and the number of layers, files and
// bytes are bounded, every digest is checked, layers are unpacked by package unpack and read by package
// union, which confine them. Plain HTTP is used where [Registries] says so, and for loopback
// addresses; it is never a fallback. Credentials go to the registry that they are for and to the token
// service that it names, never along with a redirect.
package imagestore
