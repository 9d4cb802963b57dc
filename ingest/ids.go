package ingest

import (
	"fmt"
	"io"
	"sync"

	"github.com/musterhq/muster/eventlog"
)

// idSource makes record ids from a source of randomness that goroutines share.
type idSource struct {
	mu struct {
		sync.Mutex // guards reading
		r          io.Reader
	}
}

// idBuffer is randomness read ahead, for one goroutine.
type idBuffer struct {
	bytes [32 * len(eventlog.RecordID{})]byte
	left  []byte
}

// next takes an id from b, refilled from s when it is empty.
func (s *idSource) next(b *idBuffer) (id eventlog.RecordID, err error) {
	if len(b.left) < len(id) {
		s.mu.Lock()
		_, err = io.ReadFull(s.mu.r, b.bytes[:])
		s.mu.Unlock()
		if err != nil {
			return id, fmt.Errorf("randomness for a record id: %w", err)
		}
		b.left = b.bytes[:]
	}
	copy(id[:], b.left)
	b.left = b.left[len(id):]
	return id, nil
}
