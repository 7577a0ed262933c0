// SPDX-License-Identifier: Apache-2.0

// Package unpack turns the tar stream of an image's layer into a directory that overlayfs takes as a
// lower layer.
//
// [Layer] unpacks a stream on its own, so layers are unpacked in parallel. Some of a layer depends on
// the layers below it: what a directory without an entry looks like, and hard links to files that only
// exist there. [Unpacked.Settle] adds that once those are complete, and then gives directories their
// modes and times: until then they are writable by their owner.
//
// # What becomes of entries
//
//   - A whiteout (.wh.name) becomes a character device 0/0, an opaque marker (.wh..wh..opq) the
//     extended attribute trusted.overlay.opaque, or user.overlay.opaque where the former is not
//     permitted. Both hide only lower layers, wherever they are in the stream. Other names that begin
//     with .wh..wh. are AUFS's bookkeeping and left out.
//   - Owners are kept where [Options].KeepOwners says so; else all belongs to the process's user.
//     Modes are kept, with setuid and setgid bits.
//   - Devices are made where [Options].Devices says so, and else left out. A device 0/0 would be a
//     whiteout and is always left out.
//   - Extended attributes of overlayfs, trusted.* and security.* but security.capability are left out;
//     the rest are set where the file system and the process's rights permit it.
//   - Runs of zeros become holes.
//   - A name below a symbolic link of the same layer is made where the link leads, inside the layer. A
//     link of a lower layer is not followed: a directory takes its place, as in Docker and containerd.
//
// # Hostile streams
//
// Names are resolved from directory descriptor to directory descriptor, and symbolic links inside the
// layer: nothing is written outside it. A name or hard link that leads out by "..", more bytes or
// entries than a [Budget] grants, and numbers that the system cannot represent are errors.
//
// # Recipes
//
// A recipe is what a stream contains besides the contents of files. With it [Replay] writes the same
// stream again from the unpacked directory, byte by byte, so a layer needs to be kept only once.
package unpack
