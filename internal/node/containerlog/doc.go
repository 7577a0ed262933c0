// SPDX-License-Identifier: Apache-2.0

// Package containerlog keeps the output of one run of a container: raw bytes
// on disk, beside a small index that says when they arrived.
//
// # Model
//
// A container writes its standard output and error straight to the log file,
// which the node opened with O_APPEND: there is no pipe through the node, so
// output survives the node's end. The log file is therefore raw: no time
// stamps, no framing, and the two streams share it.
//
// Offsets count the bytes that the container ever wrote. They never change
// their meaning: retention punches holes at the front of the file (which give
// their blocks back to the disk and keep its size), so byte 1,000,000 is found at
// position 1,000,000 for as long as it is kept. [Writer.Retain] moves the start;
// the start is written down before the hole is punched, so a reader that finds
// zeros also finds that they are no longer part of the log.
//
// The index file (the log's path with the suffix ".idx") is a header with the start and then records
// (end, time): "all bytes before end had arrived at time". A byte's time is the
// time of the first record whose end lies behind it. The node calls
// [Writer.Mark] each time it has seen the file grow. A log without an index, or
// with a torn last record, is still readable: bytes without a record carry the
// time at which the file last changed.
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
