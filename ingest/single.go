package ingest

import (
	"fmt"

	"github.com/musterhq/muster/resolver"
)

// EventError says why an event given to [Handler.Record] was not stored, or
// that it may not have been.
type EventError struct {
	// Status is what the fault would be as HTTP status: 400 for one of the
	// event's own, 413 for one that is too large, 503 for one of the service's.
	Status int
	// Message names the field at fault and the remedy.
	Message string
}

func (e *EventError) Error() string { return e.Message }

// Record takes one event of a request that was authenticated elsewhere: the same
// JSON text, rules and limits as POST /api/v1/events. It returns the profile that
// the event was recorded against and what of it was not taken over, "" for nothing, or
// an [*EventError].
func (h *Handler) Record(account uint64, event []byte) (profile resolver.ProfileID, warning string, err error) {
	w := h.acquire()
	defer h.release(w)
	if !w.lease.need(int64(len(event) + recordHead)) {
		return profile, "", h.noMemory().eventError()
	}
	// The caller that authenticated the request has checked its fields.
	w.dec.IgnoreUnknown(true)
	if refused := w.dec.single(event, h.opts.Now().UnixMilli()); refused != nil {
		h.showRefused(endpointEvent, account, event, refused.text)
		return profile, "", refused.eventError()
	}
	if text := w.dec.errorText(0); len(text) > 0 {
		h.counters.refused.Inc()
		h.showRefused(endpointEvent, account, event, string(text))
		return profile, "", &EventError{400, string(text)}
	}
	if refused := h.submit(w, endpointEvent, account); refused != nil {
		return profile, "", refused.eventError()
	}
	o := resolver.EventOutcome{Status: resolver.EventRefused, Refusal: w.out.Refusal}
	if o.Refusal == nil {
		o = w.out.Events[0]
	}
	switch o.Status {
	case resolver.EventAccepted:
		h.counters.accepted.Inc()
	case resolver.EventDuplicate:
		h.counters.duplicate.Inc()
	default:
		h.counters.refused.Inc()
		if o.Refusal == nil {
			return profile, "", fmt.Errorf("%w: an event was refused without a reason", resolver.ErrUnavailable)
		}
		h.showRefused(endpointEvent, account, event, o.Refusal.Message)
		return profile, "", &EventError{400, o.Refusal.Message}
	}
	return o.Profile, o.Warning(), nil
}

func (r *requestError) eventError() *EventError { return &EventError{r.status, r.text} }
