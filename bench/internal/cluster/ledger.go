package cluster

import (
	"github.com/musterhq/muster/bench/internal/loader"
)

// ledger is what was sent to a group and what of it was acknowledged.
type ledger struct {
	acked []loader.Range
	// unsure is how many events were sent and not acknowledged.
	unsure uint64
	// counts are by company, profile and type of event.
	counts map[tally]count
}

type tally struct {
	company   int
	profile   uint64
	eventType string
}

type count struct{ acked, sent uint32 }

func newLedger() *ledger { return &ledger{counts: map[tally]count{}} }

// add takes over what a fleet has sent, once it sends no more.
func (l *ledger) add(f *loader.Fleet) error {
	l.acked = append(l.acked, f.Acked()...)
	return f.Replay(func(company int, profile uint64, eventType string, acked bool) {
		t := tally{company, profile, eventType}
		c := l.counts[t]
		c.sent++
		if acked {
			c.acked++
		} else {
			l.unsure++
		}
		l.counts[t] = c
	})
}

// profiles are how many of a company have so many events of a type, or more: the
// least by what was acknowledged, the most by what was sent.
func (l *ledger) profiles(company int, eventType string, events int) (least, most uint64) {
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
