package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrOtherOwner reports that the database holds the history of another log.
var ErrOtherOwner = errors.New("the database belongs to another log")

// ensureOwner makes Options.Owner the owner of a database without one, and refuses
// the database of another. The owner is a view without a table: it is made in one
// instant, so of several who are first at once one wins, and all see who.
func (s *Store) ensureOwner(ctx context.Context) error {
	if s.opts.Owner == "" {
		return nil
	}
	err := s.exec(ctx, s.opts.QueryTimeout, "CREATE VIEW IF NOT EXISTS installation AS SELECT "+quote(s.opts.Owner)+" AS log")
	if err != nil {
		return err
	}
	owner := ""
	err = s.query(ctx, s.opts.QueryTimeout, "SELECT log FROM installation", func(r driver.Rows) error { return r.Scan(&owner) })
	switch {
	case err != nil:
		return err
	case owner != s.opts.Owner:
		return fmt.Errorf("%w: it holds the history of %s, this node's is %s: name another database in the DSN; it is made when there is none", ErrOtherOwner, owner, s.opts.Owner)
	}
	return nil
}
