package analytics

import (
	"slices"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/segment"
)

// Media are the channels of messages. What bounces on one says nothing of another, so
// they are never counted together.
var Media = []string{MediumEmail, "sms", "whatsapp", "im", "push", mediumInApp}

// MediumEmail is the channel of e-mails.
const MediumEmail = "email"

// mediumInApp is the channel of in-app messages. They are in the inbox once they are sent, so
// that all that were sent were delivered.
const mediumInApp = inapp.Channel

// What happens to messages, by the last part of the event's type.
const (
	actSent = iota
	actDelivered
	actFailed
	actOpened
	actClicked
	actBounced
	actComplained
	actUnsubscribed
	countOfActs
)

var acts = [countOfActs]string{"sent", "delivered", "failed", "opened", "clicked", "bounced", "complained", "unsubscribed"}

// unsubscribedEvent is the event of a consent withdrawn without a message: by the
// account's own form, a call or an import. Its channel is a property. It says something of
// messageRows only where it names the campaign that led to it.
const unsubscribedEvent = "unsubscribed"

// messageAct is the meaning of an event for its message.
type messageAct struct {
	medium string // "" for unsubscribedEvent
	act    int
}

var actOf = func() map[string]messageAct {
	out := map[string]messageAct{unsubscribedEvent: {"", actUnsubscribed}}
	for act := range acts {
		for _, m := range Media {
			if m != mediumInApp || act != actDelivered {
				out[eventOf(m, act)] = messageAct{m, act}
			}
		}
	}
	return out
}()

// eventOf is the type of the events that say that something happened to messages of a channel.
func eventOf(medium string, act int) string {
	if medium == mediumInApp && act == actOpened {
		return mediumInApp + "_" + inapp.Seen
	}
	return medium + "_" + acts[act]
}

// Engagements are the types of the events of opens and clicks on a channel.
func Engagements(medium string) []string {
	return []string{eventOf(medium, actOpened), eventOf(medium, actClicked)}
}

// IsOpen reports whether events of a type are opens of messages.
func IsOpen(eventType string) bool {
	x, known := actOf[eventType]
	return known && x.act == actOpened
}

// messageEvents are the types of the events of messages but unsubscribedEvent.
func messageEvents() (out []string) {
	for t := range actOf {
		if t != unsubscribedEvent {
			out = append(out, t)
		}
	}
	return out
}

// ByPeople are conditions that leave out what machines opened and clicked.
func ByPeople(also ...segment.Predicate) []segment.Predicate {
	text := func(s string) segment.Value { return segment.Value{Kind: segment.ValueString, Str: s} }
	return append(also, segment.Predicate{Path: []string{"agent"}, Op: segment.OpNotIn, Values: []segment.Value{text(messages.AgentPrefetch), text(messages.AgentMachine)}})
}

// messageRow is how many messages something happened to.
type messageRow struct {
	messageAct
	query.SeriesRow
}

// messageRows asks history what happened to messages, machines apart. Where q tells events
// apart by a property, which only messages have, an unsubscribedEvent has no channel.
func messageRows(c *keycall.Call, q query.SeriesQuery) ([]messageRow, error) {
	if len(q.By) > 0 {
		return messageRowsOf(c, append(messageEvents(), unsubscribedEvent), q)
	}
	out, err := messageRowsOf(c, messageEvents(), q)
	if err != nil {
		return nil, err
	}
	unsubscribed, err := unsubscribeRows(c, q)
	return append(out, unsubscribed...), err
}

// messageRowsOf asks history for events of some types, machines apart.
func messageRowsOf(c *keycall.Call, types []string, q query.SeriesQuery) (out []messageRow, err error) {
	q.Types, q.Where = types, ByPeople(q.Where...)
	rows, err := askSeries(c, q)
	for _, r := range rows {
		out = append(out, messageRow{actOf[r.Type], r})
	}
	return out, err
}

// unsubscribeRows asks history who withdrew consent because of a campaign without following
// its link, by channel.
func unsubscribeRows(c *keycall.Call, q query.SeriesQuery) (out []messageRow, err error) {
	q.By = []string{"channel"}
	q.Where = append(slices.Clone(q.Where), segment.Predicate{Path: []string{"campaign_id"}, Op: segment.OpExists})
	rows, err := messageRowsOf(c, []string{unsubscribedEvent}, q)
	for _, r := range rows {
		if _, known := actOf[r.Value+"_"+acts[actSent]]; known { // not a channel without messages, or a customer's event
			r.medium = r.Value
			out = append(out, r)
		}
	}
	return out, err
}

// tally is the outcomes of the messages of a channel.
type tally struct{ n, unique [countOfActs]uint64 }

func (t *tally) add(r *messageRow) {
	t.n[r.act] += r.Events
	t.unique[r.act] += r.Profiles
	if r.medium == mediumInApp && r.act == actSent {
		t.n[actDelivered] += r.Events
	}
}

// The thresholds of the guidance for e-mail: hard bounces below 2 %, complaints below
// 0.1 %.
const (
	bounceLimit    = 0.02
	complaintLimit = 0.001
)

// MessageCounts is a tally as it is answered. Rates are shares of those sent, from 0 to 1,
// or null, see rate; unique numbers, and the rate of those who unsubscribed, count a
// person once.
type MessageCounts struct {
	Sent            uint64   `json:"sent"`
	Delivered       uint64   `json:"delivered"`
	Failed          uint64   `json:"failed"`
	Opens           uint64   `json:"opens"`
	UniqueOpens     uint64   `json:"unique_opens"`
	Clicks          uint64   `json:"clicks"`
	UniqueClicks    uint64   `json:"unique_clicks"`
	Bounces         uint64   `json:"bounces"`
	Complaints      uint64   `json:"complaints"`
	Unsubscribes    uint64   `json:"unsubscribes"`
	DeliveryRate    *float64 `json:"delivery_rate"`
	OpenRate        *float64 `json:"open_rate"`
	ClickRate       *float64 `json:"click_rate"`
	BounceRate      *float64 `json:"bounce_rate"`
	ComplaintRate   *float64 `json:"complaint_rate"`
	UnsubscribeRate *float64 `json:"unsubscribe_rate"`
	// Null on other channels than e-mail, which have no such thresholds.
	BounceRateOK    *bool `json:"bounce_rate_healthy"`
	ComplaintRateOK *bool `json:"complaint_rate_healthy"`
}

func (t *tally) body(medium string) MessageCounts {
	n, u := &t.n, &t.unique
	sent := n[actSent]
	out := MessageCounts{Sent: sent, Delivered: n[actDelivered], Failed: n[actFailed], Opens: n[actOpened], UniqueOpens: u[actOpened], Clicks: n[actClicked], UniqueClicks: u[actClicked],
		Bounces: n[actBounced], Complaints: n[actComplained], Unsubscribes: n[actUnsubscribed],
		DeliveryRate: rate(n[actDelivered], sent), OpenRate: rate(u[actOpened], sent), ClickRate: rate(u[actClicked], sent),
		// What bounced at once was never sent.
		BounceRate: rate(n[actBounced], sent+n[actBounced]), ComplaintRate: rate(n[actComplained], sent), UnsubscribeRate: rate(u[actUnsubscribed], sent),
	}
	if medium == MediumEmail {
		bounces, complaints := below(n[actBounced], sent+n[actBounced], bounceLimit), below(n[actComplained], sent, complaintLimit)
		out.BounceRateOK, out.ComplaintRateOK = &bounces, &complaints
	}
	return out
}

// rate is the share that n are of those sent, nil where it cannot be told: nothing was
// sent in the range, or more happened than was sent, so that some of it is about messages
// of before.
func rate(n, of uint64) *float64 {
	if of == 0 || n > of {
		return nil
	}
	r := Share(n, of)
	return &r
}

// below reports whether n are a smaller share than the limit, or none at all.
func below(n, of uint64, limit float64) bool { return n == 0 || float64(n) < limit*float64(of) }

// WebhookCounts is the outcomes of deliveries to the account's webhooks, since those
// were made.
type WebhookCounts struct {
	Endpoints   int    `json:"endpoints"`
	Delivered   uint64 `json:"delivered"`
	Failures    uint64 `json:"failures"`
	Dropped     uint64 `json:"dropped"`
	Waiting     int    `json:"waiting"`
	DeadLetters int    `json:"dead_letters"`
}

func (w *WebhookCounts) count(v *resolver.View) {
	for _, e := range v.Outbox().Endpoints() {
		waiting, dead := v.Outbox().EndpointQueue(e.ID)
		w.Endpoints++
		w.Delivered += e.Delivered
		w.Failures += e.Failures
		w.Dropped += e.Dropped
		w.Waiting += waiting
		w.DeadLetters += dead
	}
}

// Share is the share that n are of, 0 of none.
func Share(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
