// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// changes notifies a follower that a file may have grown. If the system sends no
// notifications (the user's inotify instances are exhausted, or a network file
// system), it ticks.
type changes struct {
	watcher *fsnotify.Watcher
	ticker  *time.Ticker
}

const (
	tickWithNotices    = time.Second
	tickWithoutNotices = 100 * time.Millisecond
)

func watch(path string) *changes {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = w.Add(path); err == nil {
			return &changes{watcher: w, ticker: time.NewTicker(tickWithNotices)}
		}
		w.Close()
	}
	return &changes{ticker: time.NewTicker(tickWithoutNotices)}
}

// wait returns when the file may have grown, when ended is closed or ctx is done.
func (c *changes) wait(ctx context.Context, ended <-chan struct{}) {
	var events chan fsnotify.Event
	var errs chan error
	if c.watcher != nil {
		events, errs = c.watcher.Events, c.watcher.Errors
	}
	select {
	case <-events:
	case <-errs: // notices were lost; look
	case <-c.ticker.C:
	case <-ended:
	case <-ctx.Done():
	}
}

func (c *changes) close() {
	c.ticker.Stop()
	if c.watcher != nil {
		c.watcher.Close()
	}
}
