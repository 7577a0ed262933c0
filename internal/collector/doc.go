// SPDX-License-Identifier: Apache-2.0

// Package collector turns what trials print, write or serve into observations.
//
// # The model
//
// A [Spec] says where one trial's metrics come from and which they are; a
// [Trials] finds it, from the Trial object. A [Collector] is asked, for each
// run of a container, a [Subject], whether it reports metrics. If so, an
// [Observer] looks now and then at what the run yields, until it has ended.
//
// All observers feed streams. A [Stream] takes the bytes of one source in
// pieces of any size, cuts them into units by a framer, finds the metrics in
// each unit by a parser, and stores them:
//
//	observer   reads                           units        parser
//	tail       the output, or a file           lines        TEXT or JSON
//	directory  event files, a stream for each  TFRecords    TensorFlow events
//	scraper    a page, whose changes it makes  lines        JSON
//
// # Nothing lost, nothing twice
//
// A stream stores points together with the offset of the first byte after the
// last whole unit that it has read. A stream that takes over from one that was
// killed goes on from there. Points wait a short while to be stored together,
// but Finish returns only when all are. So once a container is
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
// Event files are read without TensorFlow: records with two checksums, whose
// data are protocol buffers of which a few fields matter. Of damage, what is
// whole after it is found again by the checksum of its header.
//
// # Bounds
//
// A program may print without end. Lines are read up to a length; and from a
// number of points on, of all those that come within an interval only the
// least, the greatest and the latest of each metric are kept, so that its
// summary stays exact. See [Config].
package collector
