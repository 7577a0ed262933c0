// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"diwan.dev/diwan/internal/platform/durable"
)

// fileID identifies a file and the state that it is in.
type fileID struct {
	Device   uint64 `json:"d"`
	Inode    uint64 `json:"i"`
	Size     int64  `json:"s"`
	Modified int64  `json:"m"`
	Changed  int64  `json:"c"`
}

type seenRecord struct {
	fileID
	Digest digest.Digest `json:"h"`
}

const (
	// settled is how long a file must have been left alone before it was read, so that a later change is
	// sure to show in its times, however coarse these are.
	settled = 2 * time.Second
	// maxSeen bounds the records; the oldest go first.
	maxSeen = 100_000
)

// seen are the digests of files that were saved.
type seen struct {
	mu    sync.Mutex
	known map[fileID]digest.Digest
	added []seenRecord
}

// readSeen reads what is known. A damaged file is none.
func (s *Store) readSeen() *seen {
	var records []seenRecord
	_ = readJSON(s.path("seen"), &records)
	found := &seen{known: make(map[fileID]digest.Digest, len(records))}
	for _, r := range records {
		found.known[r.fileID] = r.Digest
	}
	return found
}

func (s *seen) find(info fs.FileInfo) (digest.Digest, bool) {
	id, _, ok := identity(info)
	d := s.known[id]
	return d, ok && d != ""
}

// add records the digest of a file whose reading began at start.
func (s *seen) add(info fs.FileInfo, d digest.Digest, start time.Time) {
	id, changed, ok := identity(info)
	if !ok || start.Sub(changed) < settled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added = append(s.added, seenRecord{id, d})
}

// writeSeen adds to what others have recorded meanwhile.
func (s *Store) writeSeen(news *seen) error {
	if len(news.added) == 0 {
		return nil
	}
	l, err := durable.Lock(context.Background(), s.path("lock"))
	if err != nil {
		return err
	}
	defer l.Close()
	var records []seenRecord
	_ = readJSON(s.path("seen"), &records)
	records = append(records, news.added...)
	if len(records) > maxSeen {
		records = records[len(records)-maxSeen:]
	}
	return writeJSON(s.path("seen"), records)
}
