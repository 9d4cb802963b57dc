package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// modelLog is a partition as it is in Kafka, and what of it is our own.
type modelLog struct {
	records []string
	own     []ownBatch // acknowledged or to be, in the log's order
}

func (m *modelLog) write(n int, own bool) {
	base := int64(len(m.records))
	buf := make([]byte, prefixSize)
	for i := range n {
		data := fmt.Sprintf("record %d", base+int64(i))
		m.records = append(m.records, data)
		buf = appendRecord(buf, i, nil, []byte(data))
	}
	if own {
		m.own = append(m.own, ownBatch{base: base, end: base + int64(n), buf: buf})
	}
}

// TestMemoryHandsOverWhatIsInTheLogL2 writes a log in which our batches are
// mixed with those of others and acknowledges ours late, in any order, some never
// and some twice written. A follower that takes from memory what it can and
// fetches the rest sees each record of the log once, in order; the bytes kept are
// within the limit, and none are left when it goes.
func TestMemoryHandsOverWhatIsInTheLogL2(t *testing.T) {
	total := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var log modelLog
		o := own{limit: int64(200 + rng.IntN(4000))}
		woken := make(chan struct{}, 1)
		if !o.follow(woken) || o.follow(make(chan struct{}, 1)) {
			t.Fatal("there is one follower, the first")
		}
		var waiting []ownBatch // acknowledgements under way
		fromMemory, refused := 0, 0
		var scan scanner
		acknowledged := int64(0) // behind the newest record that is acknowledged to us
		for next := int64(0); next < 300 || len(waiting) > 0; {
			for range rng.IntN(3) {
				ours := rng.IntN(3) > 0
				log.write(1+rng.IntN(4), ours)
				if ours && rng.IntN(10) > 0 { // or its answer is lost
					waiting = append(waiting, log.own[len(log.own)-1])
				}
			}
			for len(waiting) > 0 && rng.IntN(3) > 0 {
				i := rng.IntN(len(waiting))
				b := waiting[i]
				waiting = append(waiting[:i], waiting[i+1:]...)
				if !o.add(b) {
					refused++
				}
				acknowledged = max(acknowledged, b.end)
				o.news()
			}
			if o.mu.bytes > o.limit {
				t.Fatalf("seed %d: %d bytes are kept, the limit is %d", seed, o.mu.bytes, o.limit)
			}
			b, found, _ := o.take(next, nil)
			switch {
			case found:
				if b.end > acknowledged {
					t.Fatalf("seed %d: a batch that ends at %d is handed over, %d was acknowledged", seed, b.end, acknowledged)
				}
				scan.own(b)
				for ; next < b.end; next++ {
					data, err := scan.next(next)
					if err != nil || string(data) != log.records[next] {
						t.Fatalf("seed %d: memory has %q at %d, %v", seed, data, next, err)
					}
					fromMemory++
				}
			case rng.IntN(3) == 0: // fetch some, batches as they are or amid them
				next = min(int64(len(log.records)), next+int64(rng.IntN(6)))
			}
		}
		total += fromMemory
		if fromMemory == 0 {
			t.Errorf("seed %d: nothing came from memory: not the test it should be", seed)
		}
		o.leave(woken)
		if o.mu.bytes != 0 || o.mu.batches != nil || o.add(log.own[0]) {
			t.Errorf("seed %d: %d bytes are kept without a reader", seed, o.mu.bytes)
		}
	}
	if total == 0 {
		t.Error("nothing came from memory")
	}
}

// TestMemoryCountsWhatItKeepsQ1: what is taken or was passed no longer counts, and
// what does not fit is not kept.
func TestMemoryCountsWhatItKeepsQ1(t *testing.T) {
	var log modelLog
	for range 10 {
		log.write(2, true)
	}
	size := int64(cap(log.own[0].buf))
	o := own{limit: 4 * size}
	woken := make(chan struct{}, 1)
	o.follow(woken)
	for i, b := range log.own {
		if kept := o.add(b); kept != (i < 4) {
			t.Fatalf("batch %d: kept %v", i, kept)
		}
	}
	b, found, passed := o.take(5, nil)
	if !found || b.base != 4 || len(passed) != 2 || o.mu.bytes != size {
		t.Fatalf("%v %v, passed %d, %d bytes", b.base, found, len(passed), o.mu.bytes)
	}
	interrupted := 0
	// 8 is not there: its waiter is interrupted by it and nothing else.
	if _, found, passed := o.take(8, func() { interrupted++ }); found || len(passed) != 1 || o.mu.bytes != 0 {
		t.Fatalf("%v, passed %d, %d bytes", found, len(passed), o.mu.bytes)
	}
	o.add(log.own[5])
	o.add(log.own[3])
	if interrupted != 0 {
		t.Fatal("interrupted by another batch")
	}
	o.add(log.own[4])
	o.add(log.own[6])
	if interrupted != 1 {
		t.Fatalf("interrupted %d times", interrupted)
	}
}
