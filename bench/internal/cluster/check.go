package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/ledger"
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
	if once.Once, err = l.ledger.Check(seen, foreign); err != nil {
		return once, err
	}
	for i, c := range l.companies {
		if c == nil {
			continue
		}
		right, err := counted(ctx, l.ledger, i, c)
		once.Segments += right
		if err != nil {
			return once, err
		}
	}
	return once, nil
}

// keys asks ClickHouse for the sequence numbers of each worker's events, and how
// many rows are of no worker.
func (b *backing) keys(ctx context.Context, database string, companies []*company) (seen map[ledger.Sender][]uint64, foreign uint64, err error) {
	byAccount := map[uint64]int{}
	for i, c := range companies {
		if c != nil {
			byAccount[c.account] = i
		}
	}
	seen = map[ledger.Sender][]uint64{}
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
				seen[ledger.Sender{Company: i, Worker: int(worker)}] = sequences
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

// counted asks for a company's segments by levels and compares them.
func counted(ctx context.Context, l *ledger.Bulk, number int, c *company) (right int, err error) {
	client, err := surface.SignIn(ctx, c.credentials)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for _, level := range c.levels {
		live, got, err := client.Segment(ctx, level.id)
		least, most := l.Profiles(number, level.eventType, level.events)
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
