package live

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// The bounds of what is kept of refused events. They are in memory alone.
const (
	maxRefusedOfAccount = 100
	maxRefusedAccounts  = 64       // with refused events; the one refused last longest ago is forgotten
	maxRefusedBody      = 4 << 10  // of one event, in bytes
	maxRefusedParsed    = 64 << 10 // longer bodies are not looked into
)

// Refused is an event that was not stored.
type Refused struct {
	AtMs      int64
	EventType string // "" where the body does not say
	// Idents are the identifiers that the body gives, by kind, "" for none.
	Idents [identifier.Kinds]string
	Reason string
	// Body is the event as it was sent, at most 4 KiB, without the values of keys that
	// speak of secrets; "" for an erased person's.
	Body      string
	BodyBytes int // of the whole
	// SourceID, SourceName and Call say what sent the event through the tracking API; they
	// are empty for others.
	SourceID, SourceName, Call string
}

// refusedEvents keeps the newest refused events of accounts for people who come to
// watch. It is safe for concurrent use.
type refusedEvents struct {
	mu sync.Mutex
	of map[uint64][]Refused // the newest last
	// order has the accounts, that of the newest event last.
	order []uint64
}

func (r *refusedEvents) add(account uint64, e Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[uint64][]Refused{}
	}
	list := append(r.of[account], e)
	if len(list) > maxRefusedOfAccount {
		list = append([]Refused(nil), list[len(list)-maxRefusedOfAccount:]...)
	}
	r.of[account] = list
	for i, x := range r.order {
		if x == account {
			r.order = append(r.order[:i], r.order[i+1:]...)
			break
		}
	}
	if r.order = append(r.order, account); len(r.order) > maxRefusedAccounts {
		delete(r.of, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *refusedEvents) forget(account uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, account)
}

func (r *refusedEvents) list(account uint64) []Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Refused(nil), r.of[account]...)
}

// secretValue finds values of keys that speak of secrets.
var secretValue = regexp.MustCompile(`(?i)("[^"]{0,60}(?:secret|password|passwd|token|authorization|api_?key|write_?key|card_?number|cvc)[^"]{0,60}"\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s,}\]]+)`)

// NewRefused is what is kept of an event that was refused at an instant (Unix ms) for a
// reason. raw is the event, or the whole body where that could not be read; it is not used
// afterwards.
func NewRefused(atMs int64, raw []byte, reason string) Refused {
	e := Refused{AtMs: atMs, Reason: reason, BodyBytes: len(raw)}
	if strings.Contains(reason, erasure.Message) {
		return e // nothing may be kept of an erased person
	}
	if len(raw) <= maxRefusedParsed {
		var in struct {
			EventType any                        `json:"event_type"`
			User      map[string]json.RawMessage `json:"user"`
			// Those of a call of the tracking API.
			Event  any             `json:"event"`
			UserID json.RawMessage `json:"userId"`
		}
		// What is wrong may be just this: what can be read is.
		_ = json.Unmarshal(raw, &in)
		e.EventType, _ = in.EventType.(string)
		for k := range identifier.Kinds {
			_ = json.Unmarshal(in.User[k.String()], &e.Idents[k])
			e.Idents[k] = clip.Valid(e.Idents[k], 320)
		}
		if e.EventType == "" {
			e.EventType, _ = in.Event.(string)
		}
		if e.Idents[identifier.ExternalID] == "" && json.Unmarshal(in.UserID, &e.Idents[identifier.ExternalID]) == nil {
			e.Idents[identifier.ExternalID] = clip.Valid(e.Idents[identifier.ExternalID], 320)
		}
		e.EventType = clip.Valid(e.EventType, 200)
	}
	// A value may begin before the cut and end behind it.
	body := secretValue.ReplaceAllString(clip.Valid(string(raw[:min(len(raw), 2*maxRefusedBody)]), 2*maxRefusedBody), `$1"(hidden)"`)
	e.Body = clip.Valid(body, maxRefusedBody)
	return e
}

// Refuse shows an event that was refused to those who watch the account, and keeps it for
// those who come.
func (l *Events) Refuse(account uint64, e Refused) {
	l.refused.add(account, e)
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if w.account == account {
			w.put(&Event{Refused: &e})
		}
	}
}

// Refused lists the newest refused events of an account, the oldest first.
func (l *Events) Refused(account uint64) []Refused { return l.refused.list(account) }

// Forget drops what is kept of an account, as when a person is erased from it.
func (l *Events) Forget(account uint64) { l.refused.forget(account) }
