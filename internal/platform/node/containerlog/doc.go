// SPDX-License-Identifier: Apache-2.0

// Package containerlog stores the output of one run of a container: raw bytes on disk, with a small index
// of their arrival times.
//
// # Model
//
// A container writes its standard output and error straight to the log file, which the node opened with
// O_APPEND: there is no pipe through the node, so output survives the node. The log file is therefore raw:
// no timestamps, no framing, and the two streams share it.
//
// Offsets count all bytes that the container ever wrote, and never change: retention punches holes at the
// front of the file (which frees the blocks but keeps the size), so byte 1,000,000 is at position
// 1,000,000 for as long as it is kept. [Writer.Retain] moves the start; the new start is recorded before
// the hole is punched, so a reader that finds zeros also sees that they are no longer part of the log.
//
// The index file (the log's path with the suffix ".idx") is a header with the start and then records (end,
// time): "all bytes before end had arrived at time". A byte's time is the time of the first record whose
// end lies behind it. The node calls [Writer.Mark] whenever it sees the file grow. A log without an index,
// or with a torn last record, is still readable: bytes without a record have the file's modification time.
//
// # Use by the node
//
//	w, err := containerlog.Create(path)      // before the container starts, and when it is adopted
//	w.File()                                 // give this to the container as fd 1 and 2
//	end, err := w.Size()                     // after a change notice or a tick
//	w.Mark(end, now)                         // says when the bytes came
//	w.Retain(consumed, containerlog.Keep)    // keeps the newest 50 MiB of what the observers have read
//	w.Close()                                // the file stays; containerlog.Remove deletes it and its index
//
// # Use by the log server
//
//	err := containerlog.Copy(ctx, dst, path, containerlog.Options{Tail: 10, Follow: true}, ended)
//
// where ended is closed once the container has ended and nothing will be
// appended: a follow then reads to the end and returns nil.
package containerlog
