package flows

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/server"
)

// maxProfile bounds the text of a heap profile.
const maxProfile = 16 << 20

// stand is a server as it stands, after garbage was collected.
func (s service) stand(ctx context.Context) (*Stand, error) {
	var heap goHeap
	// Twice: what pools hold is let go at the second collection.
	for range 2 {
		var err error
		if heap, err = s.heap(ctx); err != nil {
			return nil, err
		}
	}
	u, err := child.UsageOf(s.PID())
	if err != nil {
		return nil, err
	}
	disk, err := s.DiskBytes()
	return &Stand{HeapBytes: heap.alloc, RSSBytes: u.RSSBytes, RSSHeldBytes: u.RSSBytes - (heap.idle - heap.released), Disk: disk}, err
}

// goHeap is Go's heap in bytes: in use, held free, and of that given back.
type goHeap struct{ alloc, idle, released int64 }

// heap collects garbage in the server and asks for its heap.
func (s service) heap(ctx context.Context) (h goHeap, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := server.Get(ctx, s.Address(), "/debug/pprof/heap?gc=1&debug=1", maxProfile)
	if err != nil {
		return h, err
	}
	return parseHeap(string(text))
}

// parseHeap reads the lines of runtime.MemStats at the end of a heap profile.
func parseHeap(text string) (h goHeap, err error) {
	for name, into := range map[string]*int64{"HeapAlloc": &h.alloc, "HeapIdle": &h.idle, "HeapReleased": &h.released} {
		_, rest, ok := strings.Cut(text, "\n# "+name+" = ")
		if !ok {
			return h, fmt.Errorf("the heap profile has no %s", name)
		}
		line, _, _ := strings.Cut(rest, "\n")
		if *into, err = strconv.ParseInt(line, 10, 64); err != nil {
			return h, fmt.Errorf("heap profile: %s: %w", name, err)
		}
	}
	return h, nil
}
