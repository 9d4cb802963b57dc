package segmenttest

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/segment"
)

// Profile draws a profile with its events; some have none at all.
func (g *Gen) Profile() *segment.NaiveProfile {
	p := &segment.NaiveProfile{
		Emails:      g.some(emails),
		Phones:      g.some(phones),
		ExternalIDs: g.some(ids),
		CreatedAtMs: g.when(),
		Consents:    map[string]segment.NaiveConsent{},
		Lists:       g.some(listIDs),
	}
	if g.chance(70) {
		p.FirstName = pick(g, names)
	}
	if g.chance(50) {
		p.LastName = pick(g, names)
	}
	if g.chance(80) {
		var t tree
		for _, key := range []string{"country", "city", "loc.lat"} {
			if g.chance(70) {
				t.set(strings.Split(key, "."), g.scalar(property{kind: segment.ValueString}))
			}
		}
		p.Geo = []byte(t.String())
	}
	p.Attributes = g.jsonObject(40)
	for _, channel := range channels {
		switch g.r.IntN(5) {
		case 0:
			p.Consents[channel] = segment.NaiveConsent{Status: segment.StatusNeverSubscribed}
		case 1, 2:
			at := g.when()
			p.Consents[channel] = segment.NaiveConsent{Status: segment.StatusSubscribed, SubscribedMs: &at}
		case 3:
			c := segment.NaiveConsent{Status: segment.StatusUnsubscribed}
			if at := g.when(); g.chance(60) {
				c.SubscribedMs = &at
			}
			p.Consents[channel] = c
		}
	}
	g.standing(p)
	// Without a draw, so that seeds that found faults draw the same still.
	if p.Anonymous = p.CreatedAtMs%6 == 1; p.Anonymous {
		p.Emails, p.Phones, p.ExternalIDs = nil, nil, nil
	}
	if !g.chance(10) {
		p.Events = g.Events(g.r.IntN(9))
	}
	return p
}

// standing draws what a profile is to those who write to it.
func (g *Gen) standing(p *segment.NaiveProfile) {
	p.FirstSeenMs = min(p.CreatedAtMs, g.when())
	p.IsContact = g.chance(40)
	moment := func(percent int) *int64 {
		if !g.chance(percent) {
			return nil
		}
		at := g.when()
		if g.chance(50) { // about the edges of statuses and halvings
			at = BaseMs - int64(g.r.IntN(8))*30*86_400_000 + int64(g.r.IntN(3)) - 1
		}
		return &at
	}
	p.LastEventMs = moment(80)
	if p.LastOpenMs = moment(40); p.LastOpenMs != nil {
		p.Opened = uint64(1 + g.r.IntN(1+g.r.IntN(30)))
	}
	if p.LastClickMs = moment(30); p.LastClickMs != nil {
		p.Clicked = uint64(1 + g.r.IntN(8))
	}
	p.Sent = uint64(g.r.IntN(9))
	p.Suppressions = map[string]string{}
	for _, channel := range channels {
		if g.chance(25) {
			p.Suppressions[channel] = pick(g, blocks)
		}
	}
	p.PushDevices = g.some(deviceKinds)
	// Time changes the statuses of e-mail subscribers only.
	if g.chance(50) {
		c := segment.NaiveConsent{Status: segment.StatusSubscribed, SubscribedMs: moment(90)}
		p.Consents["email"] = c
		delete(p.Suppressions, "email")
	}
}

// Events draws n events in any order of time.
func (g *Gen) Events(n int) []segment.NaiveEvent {
	var events []segment.NaiveEvent
	for range n {
		typ := eventTypes[g.r.IntN(1+g.r.IntN(len(eventTypes)))]
		if g.chance(8) {
			typ = "email_opened" // which event_count leaves out unless it was sent
		}
		events = append(events, segment.NaiveEvent{
			Sent:       g.chance(50),
			TimeMs:     g.when(),
			Type:       typ,
			Properties: g.jsonObject(45),
		})
	}
	return events
}

// some draws up to two of the values.
func (g *Gen) some(from []string) []string {
	var out []string
	for range g.r.IntN(3) {
		if v := pick(g, from); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
