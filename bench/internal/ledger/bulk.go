package ledger

import (
	"slices"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
)

// Bulk is what fleets of workers sent, in millions, and what of it was acknowledged: for
// those events ranges and counts take the place of [Event].
type Bulk struct {
	acked []loader.Range
	// unsure is how many events were sent and not acknowledged.
	unsure uint64
	counts map[tally]count
}

// tally is a company's profile and the type of its events.
type tally struct {
	company   int
	profile   uint64
	eventType string
}

// count is of events.
type count struct{ acked, sent uint32 }

// Sender is a worker of a company.
type Sender struct{ Company, Worker int }

// NewBulk is empty.
func NewBulk() *Bulk { return &Bulk{counts: map[tally]count{}} }

// Add takes over what a fleet has sent, once it sends no more.
func (l *Bulk) Add(f *loader.Fleet) error {
	l.acked = append(l.acked, f.Acked()...)
	return f.Replay(l.Sent)
}

// Sent takes over one event, whose sequence number is entered elsewhere.
func (l *Bulk) Sent(company int, profile uint64, eventType string, acked bool) {
	t := tally{company, profile, eventType}
	c := l.counts[t]
	c.sent++
	if acked {
		c.acked++
	} else {
		l.unsure++
	}
	l.counts[t] = c
}

// AddAcked takes over the events of a worker that were all acknowledged, each of another
// profile: that of the first event and those that follow it.
func (l *Bulk) AddAcked(r loader.Range, first uint64, eventType string) {
	l.acked = append(l.acked, r)
	for n := range r.Len() {
		l.Sent(r.Company, first+n, eventType, true)
	}
}

// Profiles are how many of a company have so many events of a type, or more: the
// least by what was acknowledged, the most by what was sent.
func (l *Bulk) Profiles(company int, eventType string, events int) (least, most uint64) {
	for t, c := range l.counts {
		if t.company != company || t.eventType != eventType {
			continue
		}
		if int(c.acked) >= events {
			least++
		}
		if int(c.sent) >= events {
			most++
		}
	}
	return least, most
}

// Check compares what history has, the sequence numbers of each sender's events and how
// many rows are of none, with what was acknowledged (L1, L2). It sorts the numbers.
func (l *Bulk) Check(seen map[Sender][]uint64, foreign uint64) (history.Once, error) {
	o := compare(l.acked, seen)
	o.Foreign = foreign
	return o, o.Err(l.unsure)
}

func compare(acked []loader.Range, seen map[Sender][]uint64) (o history.Once) {
	ranges := map[Sender][]loader.Range{}
	for _, r := range acked {
		o.Acked += r.Len()
		s := Sender{r.Company, r.Worker}
		ranges[s] = append(ranges[s], r)
	}
	found := uint64(0)
	for s, sequences := range seen {
		o.Rows += uint64(len(sequences))
		slices.Sort(sequences)
		distinct := slices.Compact(sequences)
		o.DistinctKeys += uint64(len(distinct))
		left := ranges[s]
		for _, n := range distinct {
			for len(left) > 0 && left[0].To <= n {
				left = left[1:]
			}
			if len(left) > 0 && left[0].From <= n {
				found++
			}
		}
	}
	o.Doubled, o.Missing, o.Unacked = o.Rows-o.DistinctKeys, o.Acked-found, o.DistinctKeys-found
	return o
}
