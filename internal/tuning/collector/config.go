// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"net"
	"time"
)

// Config limits the resources that a collector spends on one stream.
type Config struct {
	// Interval is how long points wait to be stored together. Once a stream
	// has reached MaxPoints, they wait fifty times as long.
	Interval time.Duration
	// MaxLine is the number of bytes of a line that are looked at; the rest of
	// a longer line is left out.
	MaxLine int
	// MaxPoints is how many points of one stream are stored one by one. After
	// that, of all points that come within an interval only the least, the
	// greatest and the latest of each metric are stored.
	MaxPoints int
	// MaxWaiting is how many points may wait in memory; more are stored at
	// once, or thinned out as above.
	MaxWaiting int
	// MaxBehind is how many bytes may be read, or reread by the next stream,
	// before waiting points are stored at once. It is well below what a node
	// keeps of a log.
	MaxBehind int64
	// MaxRecord is the number of bytes of a record in an event file; longer
	// ones, which hold images and graphs, are left out.
	MaxRecord int
	// WalkInterval is how often a directory is searched for new files, less
	// often where that takes long; MaxEntries how many files and directories are looked at, and MaxFiles how
	// many event files are read.
	WalkInterval         time.Duration
	MaxEntries, MaxFiles int
	// ScrapeInterval is how often a metrics page is scraped once a run is five
	// times as old; before that up to five times as often. ScrapeTimeout is how
	// long one scrape may take, ScrapePatience how long a program may take to
	// serve the page before the user is warned, and MaxPage the maximum size of
	// a page in bytes.
	ScrapeInterval, ScrapeTimeout, ScrapePatience time.Duration
	MaxPage                                       int64
	// Dial connects to the program that serves the page. Nil: as any program does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DefaultConfig returns the bounds for normal use. A fifth of a second is
// short enough to watch; lines of 1 MiB hold any architecture; 100,000 points
// are more than a chart can show and some 10 MB on disk; 5,000 waiting points are
// some 500 kB in memory; and 8 MiB are read again in a tenth of a second.
// A record of 16 MiB holds the numbers of any step beside some images; a walk
// over 10,000 files takes some tens of milliseconds, and so does reading a page
// of a thousand metrics, of some 100 kB.
func DefaultConfig() Config {
	return Config{
		Interval: 200 * time.Millisecond, MaxLine: 1 << 20, MaxPoints: 100_000, MaxWaiting: 5_000, MaxBehind: 8 << 20,
		MaxRecord: 16 << 20, WalkInterval: time.Second, MaxEntries: 100_000, MaxFiles: 1_000,
		ScrapeInterval: time.Second, ScrapeTimeout: time.Second, ScrapePatience: 10 * time.Second, MaxPage: 8 << 20,
	}
}

// patience is how many times longer the points of a stream wait that has
// reached MaxPoints.
const patience = 50
