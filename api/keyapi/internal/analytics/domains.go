package analytics

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/segment"
)

// maxDomains is how many domains of recipients are told apart.
const maxDomains = 50

// domainPath is the property of an e-mail's events with the recipient's domain.
var domainPath = []string{messages.PropertyDomain}

func domainsRoute() keycall.Route {
	query := spanQueryShape()[:2] // no spans
	return keycall.Route{Handle: byDomain, Operation: operation.Operation{Method: "GET", Path: "/analytics/domains", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsDomains", Summary: "E-mail by the recipient's domain",
		About: "Mailbox providers judge a sender each for themselves: rates may be fine in all and bad at one. The domain is that of the recipient's newest e-mail when the event came.",
		Query: append(query, operation.Query("campaign_id", shape.CampaignID("E-mails of a campaign alone."))),
		Data: shape.Object(shape.Req("range", shape.Object(shape.Req("from", shape.Instant("Begin, included.")), shape.Req("to", shape.Instant("End, not included.")))),
			shape.Req("domains", shape.List(messageCountsShape.Plus(shape.Req("domain", shape.Text("example.com", "In lower case."))), "Those most was sent to, 50 at most, the most first.")),
			shape.Req("other", messageCountsShape)), Fails: []string{"from Input should be before to"}}}
}

// byDomain answers GET /analytics/domains. What the domains and other count is
// together what the overview counts of e-mail.
func byDomain(c *keycall.Call) (any, error) {
	s, err := timeRangeOf(c)
	if err != nil {
		return nil, err
	}
	q := query.SeriesQuery{FromMs: s.fromMs, ToMs: s.toMs}
	id := string(c.QueryArgs().Peek("campaign_id"))
	if id != "" {
		q.Where = append(q.Where, segment.Predicate{Path: []string{"campaign_id"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: id}}})
	}
	var frequent []string
	q.Cut, err = c.Cut(func(v *resolver.View) error {
		if _, ok := v.Campaigns().Campaign(id); !ok && id != "" {
			return keycall.FailWith(keycall.CodeNotFound, "campaign_id: there is no such campaign")
		}
		frequent = frequentDomains(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	domains, err := mostSentDomains(c, q, frequent)
	if err != nil {
		return nil, err
	}
	type line struct {
		Domain string `json:"domain"`
		MessageCounts
	}
	lines, tallies := []line{}, map[string]*tally{}
	for _, name := range domains {
		tallies[name] = &tally{}
	}
	var other tally
	add := func(rows []messageRow, err error) error {
		for i := range rows {
			switch t := tallies[rows[i].Value]; {
			case rows[i].medium != MediumEmail:
			case t != nil && rows[i].Type != unsubscribedEvent:
				t.add(&rows[i])
			default:
				other.add(&rows[i])
			}
		}
		return err
	}
	rest := q
	if len(domains) > 0 {
		named, values := q, make([]segment.Value, len(domains))
		for i, name := range domains {
			values[i] = segment.Value{Kind: segment.ValueString, Str: name}
		}
		named.By = domainPath
		named.Where = append(slices.Clone(q.Where), segment.Predicate{Path: domainPath, Op: segment.OpIn, Values: values})
		if err := add(messageRowsOf(c, emailEvents(), named)); err != nil {
			return nil, err
		}
		rest.Where = append(slices.Clone(q.Where), segment.Predicate{Path: domainPath, Op: segment.OpNotIn, Values: values})
	}
	// People count once in other, too: it is asked for, not subtracted.
	if err := add(messageRowsOf(c, emailEvents(), rest)); err != nil {
		return nil, err
	}
	if err := add(unsubscribeRows(c, q)); err != nil {
		return nil, err
	}
	for _, name := range domains {
		lines = append(lines, line{name, tallies[name].body(MediumEmail)})
	}
	span := s.body()
	return map[string]any{"range": map[string]string{"from": span.From, "to": span.To}, "domains": lines, "other": other.body(MediumEmail)}, nil
}

// emailEvents are the types of the events of e-mails.
func emailEvents() (out []string) {
	for _, act := range acts {
		out = append(out, MediumEmail+"_"+act)
	}
	return out
}

// mostSentDomains are the domains with the most e-mails, sent or bounced at once. Of more
// than history can tell apart, they are the frequent ones.
func mostSentDomains(c *keycall.Call, q query.SeriesQuery, frequent []string) ([]string, error) {
	q.Account, q.By = c.Key.Account, domainPath
	q.Types = []string{MediumEmail + "_" + acts[actSent], MediumEmail + "_" + acts[actBounced]}
	rows, err := c.Backend.History.Series(c.Ctx, q)
	if errors.Is(err, query.ErrSeriesTooLarge) {
		return frequent, nil
	}
	if err != nil {
		return nil, err
	}
	sent := map[string]uint64{}
	for i := range rows {
		if rows[i].Value != "" { // of before events had the domain
			sent[rows[i].Value] += rows[i].Events
		}
	}
	out := make([]string, 0, len(sent))
	for name := range sent {
		out = append(out, name)
	}
	slices.SortFunc(out, func(x, y string) int { return cmp.Or(cmp.Compare(sent[y], sent[x]), strings.Compare(x, y)) })
	return out[:min(len(out), maxDomains)], nil
}

// frequentDomains are the most frequent domains among the e-mails that the catalog has
// looked at.
func frequentDomains(v *resolver.View) (out []string) {
	s := v.EventTypes().Properties(MediumEmail + "_" + acts[actSent])
	if s == nil {
		return nil
	}
	f, _ := s.Find(domainPath)
	if f == nil {
		return nil
	}
	for _, x := range f.Top() {
		if len(out) < maxDomains {
			out = append(out, x.Text)
		}
	}
	return out
}
