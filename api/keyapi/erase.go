package keyapi

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// eraseContact answers DELETE /contacts/{id}: the contact is forgotten, with all
// that was merged into it, and kept out from then on.
func eraseContact(c *keycall.Call) (any, error) {
	return nil, c.Command(resolver.CommandContactErase, resolver.ContactErase{ID: c.Param("id")}, nil)
}

const (
	// exportEvents is how many events are exported with a contact, the newest, and
	// exportBytes how long they may be together, each with entryBytes around it.
	exportEvents = 10_000
	exportBytes  = 16 << 20
	entryBytes   = 150
)

// exportContact answers GET /contacts/{id}/export: all that is known of a
// person.
func exportContact(c *keycall.Call) (any, error) {
	q := query.TimelineQuery{Account: c.Key.Account, Limit: exportEvents}
	var p *view.Profile
	var x contact
	segments := []string{}
	var log []record.ConsentEntry
	cut, err := c.Cut(func(v *resolver.View) (err error) {
		o, ok := v.Profiles().ResolveText(c.Param("id"))
		if !ok {
			return errNoContact
		}
		if p, err = v.Profiles().Get(o); err != nil {
			return err
		}
		atMs := max(c.Now.UnixMilli(), v.LogTimeMs())
		x = toContact(p, atMs)
		for _, s := range v.Segments().All() {
			if is, live := v.Segments().Has(s.ID, o, atMs); live && is {
				segments = append(segments, s.ID)
			}
		}
		if log, err = record.ConsentLog(v, o); err != nil {
			return err
		}
		q.Ordinals, err = v.Profiles().Ordinals(o)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.Cut = cut
	entries, complete, err := newestEvents(c, q)
	if err != nil {
		return nil, err
	}
	identities := map[string][]string{}
	for _, i := range p.Identities {
		identities[i.Kind.String()] = append(identities[i.Kind.String()], i.Value)
	}
	if len(p.AnonymousIDs) > 0 {
		identities[resolver.IdentityAnonymous.String()] = p.AnonymousIDs
	}
	type consent struct {
		Channel string  `json:"channel"`
		Status  string  `json:"status"`
		Source  string  `json:"source"`
		Since   *string `json:"since"`
	}
	consents := []consent{}
	for _, k := range p.Consents {
		consents = append(consents, consent{k.Channel, k.Status, k.Source, record.TimeOrNull(k.SinceMs)})
	}
	type suppression struct {
		Channel string `json:"channel"`
		Reason  string `json:"reason"`
		Since   string `json:"since"`
	}
	suppressions := []suppression{}
	for _, b := range p.Suppressions {
		suppressions = append(suppressions, suppression{b.Channel, b.Reason, record.Time(b.SinceMs)})
	}
	type device struct {
		ID      string `json:"device_id"`
		Kind    string `json:"kind"`
		AddedAt string `json:"added_at"`
	}
	devices := []device{}
	for _, d := range p.Devices {
		devices = append(devices, device{d.ID, d.Kind, record.Time(d.AddedMs)})
	}
	merged := []string{}
	for _, m := range p.Merged {
		merged = append(merged, m.ID.String())
	}
	return map[string]any{"contact": x, "identities": identities, "merged_ids": merged, "consents": consents, "consent_log": log, "suppressions": suppressions,
		"devices": devices, "segments": segments, "events": record.Events(entries), "events_complete": complete}, nil
}

// newestEvents are the newest events of a profile, q.Limit at most, and as many as an
// export has room for. They are read a few at a time, as large as they may be, and
// taken from the memory that all requests share.
func newestEvents(c *keycall.Call, q query.TimelineQuery) (out []query.TimelineEntry, complete bool, err error) {
	const fewest, most, readBytes = 100, 2000, 4 << 20
	limit, bytes := q.Limit, 0
	for q.Limit = fewest; len(out) < limit; {
		q.Limit = min(q.Limit, limit-len(out))
		part, err := c.Backend.History.Timeline(c.Ctx, q)
		if err != nil {
			return nil, false, err
		}
		size := 0
		for i := range part {
			size += len(part[i].EventType) + len(part[i].Properties) + entryBytes
			if bytes+size > exportBytes {
				return append(out, part[:i]...), false, c.Hold(size)
			}
		}
		if err := c.Hold(size); err != nil {
			return nil, false, err
		}
		out, bytes = append(out, part...), bytes+size
		if len(part) < q.Limit {
			return out, true, nil
		}
		q.Before = &out[len(out)-1].Key
		q.Limit = min(max(readBytes*len(part)/size, fewest), most)
	}
	return out, false, nil
}
