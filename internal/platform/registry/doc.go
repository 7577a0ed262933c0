// SPDX-License-Identifier: Apache-2.0

// Package registry is an OCI registry in a directory: an [http.Handler] that
// speaks the OCI distribution specification 1.1, and a Go API on the same
// content. It is made for a laptop: one process, one disk, clients on the same
// machine. Images and any other artifacts, models among them, are stored as
// they come: media types, annotations and referrers are kept, not interpreted.
//
// # What is on disk
//
//	blobs/<algorithm>/<hex>                          content, named by its digest
//	repositories/<name>/_blobs/<algorithm>/<hex>     empty: the repository has this blob
//	repositories/<name>/_manifests/<algorithm>/<hex> the manifest's media type
//	repositories/<name>/_tags/<tag>                  in lower case: the digest that the tag names
//	repositories/<name>/_referrers/<subject>/<digest> empty: this manifest refers to that subject
//	uploads/<uuid>/{data,session}                    a blob that is still being pushed
//	tmp/                                             files before they get their name
//
// The files are the only state, so a killed process leaves nothing to repair.
// Content is complete, verified and on stable storage before it gets its name,
// and a manifest gets its link after everything that it needs. Paths are
// resolved by [os.Root]: no symbolic link in the directory leads out of it.
//
// # Content that disappears
//
// [Registry.Collect] removes, while pushes go on, what no tag needs. Its mark
// phase takes no lock. A push that relies on existing content, from the moment
// a HEAD request answers that a blob exists, holds that content in two ways:
// it sets the link's modification time, which starts the grace period anew, and
// it notes the digest for a collection that is under way. The collector removes
// one item at a time under the lock that excludes pushes, and looks at both.
//
// A manifest is accepted only after all that it needs, children of an index
// included; its subject and layers that nobody may distribute may be missing.
// What a manifest of the same repository needs cannot be deleted by a client
// either: delete the manifest first.
package registry
