// SPDX-License-Identifier: Apache-2.0

// Package collector turns what trials print, write or serve into observations.
//
// # The model
//
// A [Spec] specifies where one trial's metrics come from and which they are; a
// [Trials] finds it, from the Trial object. A [Collector] decides, for each run
// of a container, a [Subject], whether it reports metrics. If so, an [Observer]
// periodically reads what the run produces, until it has ended.
//
// All observers feed streams. A [Stream] takes the bytes of one source in
// chunks of any size, splits them into units with a framer, parses the metrics
// in each unit, and stores them:
//
//	observer   reads                           units        parser
//	tail       the output, or a file           lines        TEXT or JSON
//	directory  event files, a stream for each  TFRecords    TensorFlow events
//	scraper    a page, whose changes it makes  lines        JSON
//
// # Nothing lost, nothing twice
//
// A stream stores points together with the offset after the last complete unit
// that it has read. After a kill, the next stream resumes from there. Points
// are batched for a short while, but Finish returns only when all are stored.
// So once a container is reported as ended, its observation is complete.
//
// # Formats
//
// TEXT and JSON are Katib's, and match what Katib matches. They differ where
// Katib loses something: a line without a timestamp gets the time when it was
// read, not the year 1; NaN and infinities are values; a JSON number is as good
// as a string, and a line that is not JSON is skipped and does not end the
// collection; a carriage return ends a line of TEXT, for progress bars; an
// empty value is no value.
//
// Event files are read without TensorFlow: records with two checksums,
// containing protocol buffers of which a few fields matter. After corruption,
// the next intact record is found by the checksum of its header.
//
// # Bounds
//
// A program may print endlessly. Lines are truncated at a maximum length; and
// beyond a number of points, only the minimum, the maximum and the latest of
// each metric per interval are kept, so that its summary stays exact. See
// [Config].
package collector
