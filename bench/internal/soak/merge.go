package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/internal/pause"
)

const (
	// mergeWorker is the number in the keys of the merging events, beyond those
	// of the fleet.
	mergeWorker = payload.MaxWorkers - 1
	callLimit   = time.Minute
)

// merger merges pairs of profiles, one after the other.
type merger struct {
	target loader.Target
	caller loader.Caller
	sent   uint64
	merged uint64
}

// run merges every between until ctx ends.
func (m *merger) run(ctx context.Context, between time.Duration) error {
	for next := time.Now(); ; next = next.Add(between) {
		if pause.For(ctx, time.Until(next)) != nil {
			return nil
		}
		if err := m.merge(); err != nil {
			return fmt.Errorf("merge %d: %w", m.merged, err)
		}
	}
}

// merge makes two profiles and has them merged.
func (m *merger) merge() error {
	email := fmt.Sprintf(`"email":"merged-%d@b.example"`, m.merged)
	external := fmt.Sprintf(`"external_id":"merged-%d"`, m.merged)
	var ids [3]string
	for i, user := range []string{email, external, email + "," + external} {
		var err error
		if ids[i], err = m.event(user); err != nil {
			return err
		}
	}
	if ids[0] == ids[1] || ids[2] != ids[0] && ids[2] != ids[1] {
		return fmt.Errorf("the profiles %s and %s were to become one, the event went to %s", ids[0], ids[1], ids[2])
	}
	m.merged++
	return nil
}

// event sends an event and returns its profile.
func (m *merger) event(user string) (profile string, err error) {
	key := payload.AppendKey(nil, mergeWorker, m.sent)
	body := fmt.Sprintf(`{"event_type":"page_viewed","user":{%s},"properties":{"value":1},"idempotency_key":"%s"}`, user, key)
	answer, err := m.caller.Post(m.target, []byte(body))
	if err != nil {
		return "", err
	}
	if profile, err = m.caller.Profile(answer); err == nil {
		m.sent++
	}
	return profile, err
}

// acked are the keys of its events.
func (m *merger) acked() loader.Range { return loader.Range{Worker: mergeWorker, To: m.sent} }
