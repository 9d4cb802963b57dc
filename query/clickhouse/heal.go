package clickhouse

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/pause"
)

// healEvery is how often at most the tables are looked at after errors.
const healEvery = 5 * time.Second

// classify is [classify], and has the tables looked at after an error that tells that one is
// not there.
func (s *Store) classify(ctx context.Context, err error) error {
	if gone(err) {
		s.heal()
	}
	return classify(ctx, err)
}

// heal has the tables looked at soon. Whoever met the error tries again as after any.
func (s *Store) heal() {
	select {
	case s.sick <- struct{}{}:
	default:
	}
}

// healNowAndThen makes again what is missing whenever something was found to be.
func (s *Store) healNowAndThen(ctx context.Context) {
	for {
		select {
		case <-s.sick:
		case <-ctx.Done():
			return
		}
		if err := s.healOnce(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.Error("history: something of the database is missing or was changed, and cannot be made again", "database", s.opts.Database, "retry_in", healEvery, "error", err)
		}
		if pause.For(ctx, healEvery) != nil {
			return
		}
	}
}

// healOnce makes what is missing. It counts towards the bound on writers.
func (s *Store) healOnce(ctx context.Context) error {
	done, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = s.ensureAll(ctx)
	// Also where that failed: whoever asks reads commits, and learns why.
	s.forget()
	if err != nil {
		return err
	}
	s.tellLoss()
	return nil
}

// forget forgets how far partitions were.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.mu.partitions {
		p.remember(kept{}, time.Now())
	}
}

// tellLoss reports that partitions may not be as far as they were.
func (s *Store) tellLoss() {
	s.mu.Lock()
	fn := s.mu.onLoss
	s.mu.Unlock()
	if fn != nil {
		fn()
	}
}

// OnLoss makes fn be called whenever tables were made again, or rows that were asked for
// turned out to be lost: positions may be lower from then on. fn must not call the store.
func (s *Store) OnLoss(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.onLoss = fn
}
