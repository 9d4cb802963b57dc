package kafka

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// counters of one partition.
type counters struct {
	appended, appendedBytes, batches            atomic.Uint64
	refusedFull, refusedTooLarge, refusedFailed atomic.Uint64
	produces, produceNanos, retries, failures   atomic.Uint64
	questions, fetches, fetchedBytes            atomic.Uint64
	ownBatches, ownRecords                      atomic.Uint64
	reconnects, leaderChanges                   atomic.Uint64
}

// Stats is a snapshot of what the log did since it was opened, over all
// partitions.
type Stats struct {
	// QueueRecords and QueueBytes wait to be acknowledged now.
	QueueRecords int
	QueueBytes   int64
	// Appended counts the records acknowledged, AppendedBytes their bytes
	// without framing, Batches the record batches they went into.
	Appended, AppendedBytes, Batches uint64
	// RefusedFull, RefusedTooLarge and RefusedFailed count the records that
	// were not stored, or not acknowledged, by reason.
	RefusedFull, RefusedTooLarge, RefusedFailed uint64
	// Produces counts the produce requests acknowledged, ProduceTime is their
	// sum. ProduceFailures counts those that were not, Retries the repetitions.
	Produces                 uint64
	ProduceTime              time.Duration
	ProduceFailures, Retries uint64
	// Questions counts the read barriers asked of brokers.
	Questions uint64
	// Fetches counts the answers with records, FetchedBytes their bytes as
	// they came, Reconnects the connections of readers that had to be made
	// again.
	Fetches, FetchedBytes, Reconnects uint64
	// OwnBatches and OwnRecords were handed to readers from memory.
	OwnBatches, OwnRecords uint64
	// LeaderChanges counts other leaders, the first of each partition included.
	LeaderChanges uint64
	// Failing is how long at least one kind of request of a partition has been
	// failing without a success; 0 when all is well.
	Failing time.Duration
	// LastError is what went wrong last, nil before, and LastErrorAt when.
	LastError   error
	LastErrorAt time.Time
}

// Stats returns a snapshot.
func (l *Log) Stats() Stats {
	var s Stats
	for _, p := range l.partitions {
		c := &p.counters
		s.Appended += c.appended.Load()
		s.AppendedBytes += c.appendedBytes.Load()
		s.Batches += c.batches.Load()
		s.RefusedFull += c.refusedFull.Load()
		s.RefusedTooLarge += c.refusedTooLarge.Load()
		s.RefusedFailed += c.refusedFailed.Load()
		s.Produces += c.produces.Load()
		s.ProduceTime += time.Duration(c.produceNanos.Load())
		s.ProduceFailures += c.failures.Load()
		s.Retries += c.retries.Load()
		s.Questions += c.questions.Load()
		s.Fetches += c.fetches.Load()
		s.FetchedBytes += c.fetchedBytes.Load()
		s.OwnBatches += c.ownBatches.Load()
		s.OwnRecords += c.ownRecords.Load()
		s.Reconnects += c.reconnects.Load()
		s.LeaderChanges += c.leaderChanges.Load()
		p.mu.Lock()
		s.QueueRecords += p.mu.queuedRecords
		s.QueueBytes += p.mu.queuedBytes
		p.mu.Unlock()
	}
	s.Failing, s.LastErrorAt, s.LastError = l.trouble.state(l.opts.Now)
	return s
}

// activity is a kind of request.
type activity string

const (
	onProduce activity = "produce"
	onOffsets activity = "ask for offsets"
	onFetch   activity = "fetch"
)

// trouble knows which requests fail at present. It logs when that begins and
// ends, not each time.
type trouble struct {
	// any is set while since is not empty, so that success costs nothing.
	any atomic.Bool
	mu  struct {
		sync.Mutex
		since map[place]time.Time
		last  error
		at    time.Time
	}
}

type place struct {
	p    *partition
	what activity
}

// met notes a failure.
func (t *trouble) met(p *partition, what activity, err error) {
	opts := &p.log.opts
	now := opts.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.last, t.mu.at = err, now
	if _, ok := t.mu.since[place{p, what}]; ok {
		return
	}
	if t.mu.since == nil {
		t.mu.since = make(map[place]time.Time)
	}
	t.mu.since[place{p, what}] = now
	t.any.Store(true)
	opts.Logger.Warn("request to Kafka failed, trying again", "topic", opts.Topic, "partition", p.id, "request", what, "err", err)
}

// over notes a success.
func (t *trouble) over(p *partition, what activity) {
	if !t.any.Load() {
		return
	}
	opts := &p.log.opts
	t.mu.Lock()
	defer t.mu.Unlock()
	since, ok := t.mu.since[place{p, what}]
	if !ok {
		return
	}
	delete(t.mu.since, place{p, what})
	t.any.Store(len(t.mu.since) > 0)
	opts.Logger.Info("requests to Kafka succeed again", "topic", opts.Topic, "partition", p.id, "request", what, "after", opts.Now().Sub(since))
}

// forget drops a request that is not sent any more.
func (t *trouble) forget(p *partition, what activity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.since, place{p, what})
	t.any.Store(len(t.mu.since) > 0)
}

func (t *trouble) state(now func() time.Time) (failing time.Duration, at time.Time, last error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.since) > 0 {
		present := now()
		for _, since := range t.mu.since {
			failing = max(failing, present.Sub(since))
		}
	}
	return failing, t.mu.at, t.mu.last
}

// cause is the last error.
func (t *trouble) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.last == nil {
		return errors.New("brokers are slow")
	}
	return t.mu.last
}
