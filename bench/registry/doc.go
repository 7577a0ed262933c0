// SPDX-License-Identifier: Apache-2.0

// Command registry compares the laptop's OCI registry with the one of
// go-containerregistry, which keeps blobs on disk but uploads and manifests in
// memory. Each serves in a process of its own on a loopback address and an empty
// directory, in turns. The client pushes one large blob as docker does (POST,
// PATCH, PUT), then a manifest, and pulls the blob:
//
//	go run ./bench/registry -size 500 -runs 5 -dir /var/tmp
//
// The figures are the median and the least time of the runs, the server's
// processor time, and the peak of its memory. Beside them is what writing the
// same data to a file costs, with and without waiting for stable storage: the
// laptop's registry waits, the other does not.
package main
