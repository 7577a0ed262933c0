// SPDX-License-Identifier: Apache-2.0

// Package collector turns what trials print or write into observations.
//
// # The model
//
// A [Spec] says where one trial's metrics come from and which they are; a
// [Trials] finds it, from the Trial object. A [Collector] is asked, for each
// container that starts, whether it reports metrics. If so, a [Stream] takes
// the bytes of its output, or of a file that it writes, in pieces of any size:
// it cuts them into lines, finds the metrics in each line, and stores them.
//
// # Nothing lost, nothing twice
//
// A stream stores points together with the offset of the first byte after the
// last whole line that it has read. A stream that takes over from one that was
// killed goes on from there. Points wait a short while to be stored together,
// but [Stream.Finish] returns only when all are. So once a container is
// reported as ended, its observation is complete.
//
// # Formats
//
// TEXT and JSON are Katib's, and find what Katib finds. They differ where Katib
// loses something: a line without a time stamp counts for the time when it was
// read, and not for the year 1; NaN and infinities are values; a JSON number is
// as good as a string, and a line that is not JSON is skipped, and does not end
// the collection; a carriage return ends a line of TEXT, as progress bars mean
// it to; an empty value is none.
//
// # Bounds
//
// A program may print without end. Lines are read up to a length; and from a
// number of points on, of all those that come within an interval only the
// least, the greatest and the latest of each metric are kept, so that its
// summary stays exact. See [Config].
package collector
