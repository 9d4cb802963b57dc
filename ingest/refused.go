package ingest

import "github.com/musterhq/muster/resolver"

// maxShown bounds how many refused events of one request are shown.
const maxShown = 100

// refusals shows refused events to people who watch, and keeps none of raw. A submitter
// may be one.
type refusals interface {
	NoteRefused(account uint64, raw []byte, reason string)
}

// showRefused shows a body, or an event, that was refused. Imports answer for
// themselves.
func (h *Handler) showRefused(e endpoint, account uint64, raw []byte, reason string) {
	if h.refusals != nil && e != endpointImport {
		h.refusals.NoteRefused(account, raw, reason)
	}
}

// showRefusals shows the events of a request that were refused. body is nil where it was
// too large to be kept.
func (h *Handler) showRefusals(w *work, e endpoint, account uint64, body []byte) {
	if h.refusals == nil || e == endpointImport {
		return
	}
	stored, shown := 0, 0
	for i := range w.dec.results {
		reason := string(w.dec.errorText(i))
		switch {
		case reason != "":
		case w.out.Refusal != nil:
			reason = w.out.Refusal.Message
		default:
			if o := &w.out.Events[stored]; o.Status == resolver.EventRefused && o.Refusal != nil {
				reason = o.Refusal.Message
			}
			stored++
		}
		if reason == "" {
			continue
		}
		var raw []byte
		if r := w.dec.results[i]; int(r.to) <= len(body) {
			raw = body[r.from:r.to]
		}
		h.refusals.NoteRefused(account, raw, reason)
		if shown++; shown == maxShown {
			return
		}
	}
}
