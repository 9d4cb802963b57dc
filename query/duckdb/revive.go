package duckdb

import (
	"fmt"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// reviveWait is how long revive waits for each connection to be given back.
const reviveWait = 200 * time.Millisecond

// revive opens the file again. The writer's lock is held. An error leaves the store
// as it is or with connections that answer it; the next call tries again.
func (s *Store) revive() (err error) {
	conns, err := s.gather(reviveWait)
	defer giveBack(conns)
	if err != nil {
		return err
	}
	return s.reopen(conns, func() {})
}

// reopen closes the file, calls between, and opens the file again. The writer's lock
// is held, and conns are all other connections. An error leaves connections that
// answer it; revive tries again.
func (s *Store) reopen(conns []gathered, between func()) (err error) {
	all := []*conn{s.writer.conn}
	for _, c := range conns {
		all = append(all, c.conn)
	}
	for _, c := range all {
		c.close()
	}
	if s.db.Ptr != nil {
		bindings.Close(&s.db)
		s.db = bindings.Database{}
	}
	between()
	defer func() {
		if err == nil {
			return
		}
		err = fmt.Errorf("%w: %w: open %s again: %w", query.ErrUnavailable, errInvalidated, s.path, err)
		for _, c := range all {
			c.close()
			c.dead = err
		}
		if s.db.Ptr != nil {
			bindings.Close(&s.db)
			s.db = bindings.Database{}
		}
	}()
	if err := openDatabase(s.path, s.opts, &s.db); err != nil {
		return err
	}
	for _, c := range all {
		if err := c.connect(s.db); err != nil {
			return err
		}
	}
	for _, c := range conns {
		if c.idle == s.replays {
			if err := c.conn.exec("SET streaming_buffer_size = '" + replayBuffer + "'"); err != nil {
				return err
			}
		}
	}
	return nil
}

// gathered is a connection that is given back to its channel.
type gathered struct {
	conn *conn
	idle chan *conn
}

func giveBack(conns []gathered) {
	for _, c := range conns {
		c.idle <- c.conn
	}
}

// gather takes all connections, or returns those it got and an error when some are
// in use for longer than it waits for each.
func (s *Store) gather(wait time.Duration) (out []gathered, err error) {
	for _, idle := range []chan *conn{s.readers, s.replays} {
		for range cap(idle) {
			c, ok := within(idle, wait)
			switch {
			case !ok:
				return out, fmt.Errorf("%w: %w: questions are still under way", query.ErrUnavailable, errInvalidated)
			case c == nil:
				return out, ErrClosed
			}
			out = append(out, gathered{c, idle})
		}
	}
	return out, nil
}

// within takes a connection, nil when the store is closed. ok is false when none is given back
// in time; one that is there is taken however late it is.
func within(idle chan *conn, wait time.Duration) (c *conn, ok bool) {
	select {
	case c = <-idle:
		return c, true
	default:
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case c = <-idle:
		return c, true
	case <-t.C:
		return nil, false
	}
}
