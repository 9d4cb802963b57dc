package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/surface"
)

// Once is what a group has at the end.
type Once struct {
	history.Once
	// Segments is how many were counted and right.
	Segments int `json:"segments"`
}

// checkTimeout bounds the questions at the end.
const checkTimeout = 5 * time.Minute

// check compares history and segments with what was sent (L1, L2).
func (l *loaded) check(ctx context.Context, b *backing) (once Once, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if _, err := l.caughtUp(ctx); err != nil {
		return once, err
	}
	seen, foreign, err := b.keys(ctx, l.database, l.companies)
	if err != nil {
		return once, err
	}
	once.Once = compare(l.ledger.acked, seen)
	once.Foreign = foreign
	if err := once.Err(l.ledger.unsure); err != nil {
		return once, err
	}
	for i, c := range l.companies {
		if c == nil {
			continue
		}
		right, err := l.ledger.counted(ctx, i, c)
		once.Segments += right
		if err != nil {
			return once, err
		}
	}
	return once, nil
}

// sender is a worker of a company.
type sender struct{ company, worker int }

// keys asks ClickHouse for the sequence numbers of each worker's events, and how
// many rows are of no worker.
func (b *backing) keys(ctx context.Context, database string, companies []*company) (seen map[sender][]uint64, foreign uint64, err error) {
	byAccount := map[uint64]int{}
	for i, c := range companies {
		if c != nil {
			byAccount[c.account] = i
		}
	}
	seen = map[sender][]uint64{}
	err = b.with(database, func(db *sql.DB) error {
		// A key is b, the worker's number, a dash and the sequence number.
		rows, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT account, toInt64(if(match(idempotency_key, '^b[0-9]{4}-[0-9]{%d}$'), toInt32OrZero(substring(idempotency_key, 2, 4)), -1)) AS worker,
			groupArray(toUInt64OrZero(substring(idempotency_key, 7))) FROM stored_events GROUP BY account, worker`, payload.KeyDigits))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var account uint64
			var worker int64
			var sequences []uint64
			if err := rows.Scan(&account, &worker, &sequences); err != nil {
				return err
			}
			if i, ours := byAccount[account]; ours && worker >= 0 {
				seen[sender{i, int(worker)}] = sequences
			} else {
				foreign += uint64(len(sequences))
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, 0, fmt.Errorf("ClickHouse's rows: %w", err)
	}
	return seen, foreign, nil
}

// compare tells how rows compare with what was acknowledged. It sorts the
// sequence numbers.
func compare(acked []loader.Range, seen map[sender][]uint64) (o history.Once) {
	ranges := map[sender][]loader.Range{}
	for _, r := range acked {
		o.Acked += r.Len()
		s := sender{r.Company, r.Worker}
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

// counted asks for a company's segments by levels and compares them.
func (l *ledger) counted(ctx context.Context, number int, c *company) (right int, err error) {
	client, err := surface.SignIn(ctx, c.credentials)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for _, level := range c.levels {
		live, got, err := client.Segment(ctx, level.id)
		least, most := l.profiles(number, level.eventType, level.events)
		switch {
		case err != nil:
			return right, err
		case !live:
			return right, fmt.Errorf("company %d: the segment of %s, %d or more, is not live", number, level.eventType, level.events)
		case got < least || got > most:
			return right, errors.Join(errWrongCount, fmt.Errorf("company %d: %d profiles have %d %s or more, the events that were sent make it %d to %d",
				number, got, level.events, level.eventType, least, most))
		}
		right++
	}
	return right, nil
}

var errWrongCount = errors.New("a segment does not count each acknowledged event exactly once")
