package segments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

const (
	// readPause lies between two timed reads, so that they meet ingest at many
	// different moments. The runtime makes about a millisecond of it.
	readPause = 50 * time.Microsecond
	// readLimit ends timing on a machine that is too busy for all reads.
	readLimit = 90 * time.Second
)

// Counts is how long it takes to count the members of live segments.
type Counts struct {
	// Idle is without ingest, Busy beside it.
	Idle Latency `json:"idle"`
	Busy Latency `json:"under_ingest"`
	// OfferedPerSec is the rate of ingest asked for beside Busy: half of what was
	// measured; PerSec what was acknowledged.
	OfferedPerSec float64 `json:"offered_events_per_second"`
	PerSec        float64 `json:"events_per_second"`
	// SQL are the same counts as SQL on DuckDB.
	SQL []SQLCount `json:"sql"`
	// LeastTimes is the smallest of SQL's Times.
	LeastTimes float64 `json:"sql_times_slower"`

	busyBySegment [][]time.Duration
}

// SQLCount is one segment counted both ways.
type SQLCount struct {
	Segment     string  `json:"segment"`
	Members     uint64  `json:"members"`
	CountMicros float64 `json:"count_p50_us"` // under ingest
	SQLMillis   float64 `json:"sql_ms"`       // median
	Times       float64 `json:"times_slower"`
}

// sqlSegments are those of the live definitions that are counted as SQL too: a
// count, a windowed count and a sum.
var sqlSegments = []int{0, 1, 4}

// counts times counts of all live segments in turns.
func (s *step) counts(ctx context.Context) error {
	c := &Counts{}
	idle, err := s.timeReads(ctx, min(s.o.Reads, 20_000), 0)
	if err != nil {
		return err
	}
	c.Idle = newLatency(flat(idle))

	c.OfferedPerSec = s.out.Ingest.With.PerSec / 2
	stop := make(chan struct{})
	type paced struct {
		events int64
		err    error
	}
	done := make(chan paced, 1)
	makers := make([]*maker, s.o.Workers)
	for i := range makers {
		makers[i] = s.maker()
	}
	begun := time.Now()
	go func() {
		n, err := s.a.pace(ctx, s.o.Workers, c.OfferedPerSec, stop, func(w int) *maker { return makers[w] },
			func(rng *rand.Rand) int { return s.o.pick(rng, s.profiles) })
		done <- paced{n, err}
	}()
	busy, err := s.timeReads(ctx, s.o.Reads, readPause)
	took := time.Since(begun)
	close(stop)
	p := <-done
	if err == nil {
		err = p.err
	}
	if err != nil {
		return err
	}
	c.PerSec = float64(p.events) / took.Seconds()
	c.Busy = newLatency(flat(busy))
	c.busyBySegment = busy
	s.out.Counts = c
	return nil
}

// sqlCounts counts some of the live segments as SQL.
func (s *step) sqlCounts(ctx context.Context) error {
	c := s.out.Counts
	for _, i := range sqlSegments {
		q, err := s.sqlCount(ctx, i)
		if err != nil {
			return err
		}
		q.CountMicros = newLatency(c.busyBySegment[i]).P50Micros
		q.Times = report.Ratio(1e3*q.SQLMillis, q.CountMicros)
		c.SQL = append(c.SQL, q)
		if c.LeastTimes == 0 || q.Times < c.LeastTimes {
			c.LeastTimes = q.Times
		}
	}
	return nil
}

// timeReads counts the live segments in turns and returns the times by segment.
func (s *step) timeReads(ctx context.Context, reads int, between time.Duration) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(s.live))
	var sum uint64
	end := time.Now().Add(readLimit)
	for i := range reads {
		id := s.live[i%len(s.live)]
		begun := time.Now()
		n, known, err := s.a.count(ctx, id, begun.UnixMilli())
		took := time.Since(begun)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, fmt.Errorf("segment %s is not live", id)
		}
		sum += n
		times[i%len(times)] = append(times[i%len(times)], took)
		if begun.After(end) {
			break
		}
		if between > 0 {
			time.Sleep(between)
		}
	}
	runtime.KeepAlive(sum)
	return times, nil
}

func flat(lists [][]time.Duration) (out []time.Duration) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// sqlCount counts a live segment as SQL, the median of three.
func (s *step) sqlCount(ctx context.Context, i int) (SQLCount, error) {
	st, err := s.a.takeState(ctx, 0)
	if err != nil {
		return SQLCount{}, err
	}
	defer st.close()
	st.snap.Universe() // made once; not the database's time
	var times []float64
	q := SQLCount{Segment: liveDefinitions()[i].name}
	for range 3 {
		begun := time.Now()
		b, err := st.evaluate(ctx, s.a.history, st.defs[s.live[i]])
		if err != nil {
			return q, err
		}
		q.Members = b.GetCardinality()
		times = append(times, float64(time.Since(begun))/1e6)
	}
	q.SQLMillis = report.Median(times)
	return q, nil
}
