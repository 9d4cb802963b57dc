package node

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/sources"
)

// The bounds of what is kept of refused events. They are in memory alone.
const (
	maxRefusedOfAccount = 100
	maxRefusedAccounts  = 64       // with refused events; the one refused last longest ago is forgotten
	maxRefusedBody      = 4 << 10  // of one event, in bytes
	maxRefusedParsed    = 64 << 10 // longer bodies are not looked into
)

// RefusedEvent is an event that was not stored.
type RefusedEvent struct {
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
	of map[uint64][]RefusedEvent // the newest last
	// order has the accounts, that of the newest event last.
	order []uint64
}

func (r *refusedEvents) add(account uint64, e RefusedEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[uint64][]RefusedEvent{}
	}
	list := append(r.of[account], e)
	if len(list) > maxRefusedOfAccount {
		list = append([]RefusedEvent(nil), list[len(list)-maxRefusedOfAccount:]...)
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

// forget drops what is kept of an account, as when a person is erased from it.
func (r *refusedEvents) forget(account uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, account)
}

func (r *refusedEvents) list(account uint64) []RefusedEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RefusedEvent(nil), r.of[account]...)
}

// secretValue finds values of keys that speak of secrets.
var secretValue = regexp.MustCompile(`(?i)("[^"]{0,60}(?:secret|password|passwd|token|authorization|api_?key|write_?key|card_?number|cvc)[^"]{0,60}"\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s,}\]]+)`)

// newRefused is what is kept of an event. It looks into bodies as far as they can be
// read.
func newRefused(atMs int64, raw []byte, reason string) RefusedEvent {
	e := RefusedEvent{AtMs: atMs, Reason: reason, BodyBytes: len(raw)}
	if strings.Contains(reason, resolver.MessageErased) {
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

// NoteRefused shows an event that was refused to those who watch the account, and keeps
// it in memory for those who come. raw is the event, or the whole body where that could
// not be read; it is not used afterwards.
func (n *Node) NoteRefused(account uint64, raw []byte, reason string) {
	n.noteRefused(account, newRefused(n.opts.Now().UnixMilli(), raw, reason))
}

// NoteRefusedCall is NoteRefused for a call of a source; call is "" where it is not known.
func (n *Node) NoteRefusedCall(source *sources.Access, call string, raw []byte, reason string) {
	e := newRefused(n.opts.Now().UnixMilli(), raw, reason)
	e.SourceID, e.SourceName, e.Call = source.SourceID, source.Name, call
	n.noteRefused(source.Account, e)
}

func (n *Node) noteRefused(account uint64, e RefusedEvent) {
	n.refused.add(account, e)
	l := &n.live
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if w.account == account {
			w.put(LiveEvent{Refused: &e})
		}
	}
}

// Refused lists the newest refused events of an account, the oldest first.
func (n *Node) Refused(account uint64) []RefusedEvent { return n.refused.list(account) }

// erases reports whether a record erases somebody.
func erases(env eventlog.Envelope, data []byte) bool {
	if env.Kind != eventlog.KindCommand {
		return false
	}
	name, _, err := eventlog.DecodeCommand(data[eventlog.EnvelopeSize:])
	return err == nil && name == resolver.CommandContactErase
}
