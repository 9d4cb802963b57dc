package checkpoint

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/sortedkeys"
	"github.com/musterhq/muster/resolver/internal/state"
)

// TestThrottle: a checkpoint pauses in proportion to its work, never long at once, and not
// for much longer in all however large it is; a waiting request has it hurry.
func TestThrottle(t *testing.T) {
	for _, x := range []struct {
		keys   int
		worked time.Duration // at each piece
		want   time.Duration // the pause after it, at least
		most   time.Duration
	}{
		{1000, 2 * time.Millisecond, 16 * time.Millisecond, longestSleep},
		{1000, 50 * time.Millisecond, longestSleep, longestSleep},
		// 20 s of work: one half of them is slept.
		{10_000_000, 20 * time.Millisecond, 10 * time.Millisecond, 90 * time.Millisecond},
	} {
		var slept []time.Duration
		p := newPauses(&Throttle{func(d time.Duration) { slept = append(slept, d) }, 10 * time.Second}, x.keys)
		begun := time.Now()
		for range 3 {
			p.since = p.since.Add(-x.worked)
			p.worked()
		}
		stalled := idleRatio * time.Since(begun) // a busy machine adds to the work
		for _, d := range slept {
			if d < x.want || d > min(longestSleep, x.most+stalled) {
				t.Errorf("%d keys, %v of work: slept %v, expected %v to %v", x.keys, x.worked, slept, x.want, x.most)
			}
		}
		p.since = time.Now().Add(time.Hour) // work that is shorter than any
		p.worked()
		if len(slept) != 3 {
			t.Errorf("slept %d times, expected 3", len(slept))
		}
	}
	newPauses(nil, 1000).worked()
	if newPauses(nil, 1000) != nil {
		t.Error("pauses without a throttle")
	}
}

// TestPartsPause: parts of a checkpoint that write nothing for a while pause all the same: the
// sort of the documents' keys, and the look-ups of keys that the index of profiles never had.
func TestPartsPause(t *testing.T) {
	db, err := pebble.Open("live", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	docs := map[state.DocKey][]byte{}
	var removed sortedkeys.Changes
	for i := range 20_000 {
		docs[state.DocKey(i)] = nil
		removed.Put(binary.BigEndian.AppendUint32(nil, uint32(i)), true)
	}
	for name, part := range map[string]func(*Pauses) error{
		"sort":  func(p *Pauses) error { sortedDocs(docs, p); return nil },
		"index": func(p *Pauses) error { return writeIndex(db, &removed, NewBatchWriter(db, p, nil)) },
	} {
		slept := 0
		p := newPauses(&Throttle{func(time.Duration) { slept++ }, time.Hour}, 1000)
		p.since = time.Now().Add(-time.Minute) // it has worked for long enough
		if err := part(p); err != nil {
			t.Fatal(err)
		}
		if slept == 0 {
			t.Errorf("%s: no pause", name)
		}
	}
}
