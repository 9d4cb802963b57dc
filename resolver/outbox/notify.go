package outbox

import (
	"time"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/feature"
)

// Listening reports whether there is an active endpoint, whatever it subscribed to.
func (s *State) Listening() bool { return len(s.active) > 0 }

// Listens reports whether some active endpoint subscribed to an event.
func (s *State) Listens(name string) bool {
	for _, e := range s.active {
		if webhookevent.Subscribed(e.Events, name) {
			return true
		}
	}
	return false
}

// Notify queues an event for each endpoint that subscribed to it. Where there is
// no room the endpoint counts what it misses. Of the profile, NoProfile for none, data has
// the profile_id.
func (s *State) Notify(tx *feature.Tx, o uint32, name string, data map[string]any) {
	var payload []byte
	for _, e := range s.active {
		if !webhookevent.Subscribed(e.Events, name) {
			continue
		}
		if payload == nil {
			payload = webhookPayload(tx, name, data)
		}
		full := s.queued(e.ID) >= maxLane
		if !full {
			_, refusal := s.Queue(tx, Item{Kind: KindWebhook, Ordinal: o, Endpoint: e.ID, Ref: name}, payload)
			full = refusal != nil
		}
		if full {
			e.Dropped++
			s.shared.Dropped++
			s.touchEndpoint(e)
		}
	}
}

// webhookPayload is the body of a webhook. It is stamped with the log time.
func webhookPayload(tx *feature.Tx, name string, data map[string]any) []byte {
	at := time.UnixMilli(tx.AtMs)
	out, err := webhookevent.Payload(name, at, must.PlainJSON(data))
	if err != nil {
		// Our own names and data; too much of it is cut to what identifies it.
		out, err = webhookevent.Payload(name, at, must.PlainJSON(map[string]any{"profile_id": data["profile_id"], "truncated": true}))
	}
	if err != nil {
		panic(err)
	}
	return out
}
