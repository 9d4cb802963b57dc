package providers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/messages"
)

// replies are an account's answers to keywords. An empty one is not sent.
type replies struct {
	Stop  string `json:"stop_reply,omitempty"`
	Start string `json:"start_reply,omitempty"`
	Help  string `json:"help_reply,omitempty"`
}

// replySource is the source of consents that people gave or withdrew by a text.
const replySource = "reply"

// maxReplyBytes bounds what is answered to a keyword.
const maxReplyBytes = 1600

func (r *replies) of(k inbound.Keyword) string {
	switch k {
	case inbound.KeywordStop:
		return r.Stop
	case inbound.KeywordStart:
		return r.Start
	case inbound.KeywordHelp:
		return r.Help
	}
	return ""
}

// recordReply records a text that a person wrote as an event of the profile with that
// number, and carries out its keyword. It may be repeated: each part is done once for each text.
func (a *API) recordReply(ctx context.Context, s *source, e *inbound.Event) (recorded bool, err error) {
	key := s.keyOf(e)
	if e.From, err = a.onFile(ctx, s.account, e); err != nil {
		return false, err
	}
	keyword := e.Keyword
	if keyword == "" {
		keyword = inbound.KeywordOf(e.Text)
	}
	stopped := false
	switch keyword {
	case inbound.KeywordStop:
		// Before its event is on record: not every provider repeats what a crash cut off.
		stopped, err = a.stop(ctx, s, e, key)
	case inbound.KeywordStart:
		// Likewise: a repeat of what was cut off must not undo a STOP that came in between.
		err = a.start(ctx, s, e, key)
	}
	if err != nil {
		return false, err
	}
	// Before the event as well: a flow may answer it at once.
	if err := a.openConversation(ctx, s.account, e); err != nil {
		return stopped, err
	}
	profile, found, err := a.whoWrote(ctx, s, e, key)
	if err != nil || !found {
		return stopped, err
	}
	switch keyword { // again, for a profile that the text has just made
	case inbound.KeywordStop:
		err = a.consent(ctx, s, e, key, profile, messages.EngagementUnsubscribed)
	case inbound.KeywordStart:
		err = a.consent(ctx, s, e, key, profile, messages.EngagementSubscribed)
	}
	if err != nil {
		return false, err
	}
	text := s.config.of(keyword)
	if text == "" || e.Answered || e.Channel == inbound.ChannelIM {
		return true, nil
	}
	// An answer goes to the profile's newest number, which may also be another profile's.
	newest, err := a.isNewest(ctx, s.account, profile, e.From)
	if err == nil && newest {
		_, err = a.opts.Node.Command(ctx, s.account, messages.CommandTextAnswer, messages.TextAnswer{Profile: profile, Channel: e.Channel, Text: text, Start: keyword == inbound.KeywordStart, Key: key})
	}
	return err == nil, err
}

// consent changes what a profile has agreed to by a text, once for each text. kind is
// [messages.EngagementUnsubscribed] or [messages.EngagementSubscribed].
func (a *API) consent(ctx context.Context, s *source, e *inbound.Event, key, profile, kind string) error {
	r := messages.EngagementRecord{Profile: profile, Channel: e.Channel, Source: replySource, Key: "reply/" + key + "/" + profile, Kind: kind}
	if !e.At.IsZero() { // providers repeat for days what they could not deliver, in any order
		r.WrittenMs = e.At.UnixMilli()
	}
	_, err := a.opts.Node.Command(ctx, s.account, messages.CommandEngagement, r)
	return err
}

// start carries out START for the profile that has the number, if there is one.
func (a *API) start(ctx context.Context, s *source, e *inbound.Event, key string) error {
	profile, found, err := a.holderOf(ctx, s.account, e.From)
	if err != nil || !found {
		return err
	}
	err = a.consent(ctx, s, e, key, profile, messages.EngagementSubscribed)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) { // the text is on record all the same
		return nil
	}
	return err
}

// openConversation notes that a person wrote by WhatsApp. A setting is no text.
func (a *API) openConversation(ctx context.Context, account uint64, e *inbound.Event) error {
	if e.Channel != inbound.ChannelWhatsApp || e.Preference {
		return nil
	}
	var open conversations.Open
	err := a.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		open.Number = v.Reach().ConversationNumber(e.From)
		return nil
	})
	if err != nil {
		return err
	}
	if !e.At.IsZero() {
		open.WrittenMs = e.At.UnixMilli()
	}
	_, err = a.opts.Node.Command(ctx, account, conversations.CommandOpen, open)
	return err
}

// stop carries out STOP for all profiles that show the number: also colleagues who share
// it, those who have it in another spelling, and those who still show the number of an erased
// person, by which no profile is found any more. Otherwise messages would still go to the number.
func (a *API) stop(ctx context.Context, s *source, e *inbound.Event, key string) (stopped bool, err error) {
	for _, phone := range append(identity.PhoneSpellings(e.From), identity.PhoneSpellings(otherForm(e))...) {
		for from, more := uint32(0), true; more; {
			var ids []string
			err := a.opts.Node.Read(ctx, s.account, func(v *resolver.View) error {
				holders, err := v.Profiles().Holders(resolver.IdentityPhone, phone, from, inboundChunk)
				if more = len(holders) == inboundChunk; more {
					from = holders[len(holders)-1] + 1
				}
				for _, o := range holders {
					ids = append(ids, v.Profiles().ID(o).String())
				}
				return err
			})
			if err != nil {
				return stopped, err
			}
			for _, id := range ids {
				err := a.consent(ctx, s, e, key, id, messages.EngagementUnsubscribed)
				var refusal *resolver.Refusal
				if err != nil && !errors.As(err, &refusal) { // a refused one was erased meanwhile
					return stopped, err
				}
				stopped = stopped || err == nil
			}
		}
	}
	return stopped, nil
}

// otherForm is the other form of the number of a text, "" where there is none.
func otherForm(e *inbound.Event) string {
	if e.Channel != inbound.ChannelWhatsApp {
		return ""
	}
	return inbound.OtherForm(e.From)
}

// onFile is the number of a text in the form in which it is on file, or was before its person
// was erased; as it came where neither form is.
func (a *API) onFile(ctx context.Context, account uint64, e *inbound.Event) (phone string, err error) {
	phone = e.From
	other := otherForm(e)
	if other == "" {
		return phone, nil
	}
	err = a.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		if v.Profiles().Known(resolver.IdentityPhone, other) && !v.Profiles().Known(resolver.IdentityPhone, phone) {
			phone = other
		}
		return nil
	})
	return phone, err
}

// isNewest reports whether a number is the newest of a profile, to which texts go.
func (a *API) isNewest(ctx context.Context, account uint64, profile, phone string) (newest bool, err error) {
	err = a.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(profile)
		if !ok {
			return nil // erased meanwhile
		}
		p, err := v.Profiles().Get(o)
		newest = err == nil && identity.NormalizePhone(p.Newest(resolver.IdentityPhone)) == identity.NormalizePhone(phone)
		return err
	})
	return newest, err
}

// whoWrote records the text as an event and returns whose it is: of a new profile where the
// number is new. A setting is no event; it concerns the profile that has the number already.
func (a *API) whoWrote(ctx context.Context, s *source, e *inbound.Event, key string) (profile string, found bool, err error) {
	if e.Preference {
		return a.holderOf(ctx, s.account, e.From)
	}
	event := map[string]any{
		"event_type": e.Channel + "_received", "user": map[string]string{"phone": e.From}, "idempotency_key": "inbound/" + key,
		"properties": map[string]string{"text": e.Text, "to": e.To, "provider": s.name},
	}
	if !e.At.IsZero() && e.At.Before(a.opts.Now()) {
		event["timestamp"] = e.At.UnixMilli()
	}
	body, err := json.Marshal(event)
	if err != nil {
		return "", false, err
	}
	id, _, err := a.opts.Events.Record(s.account, body)
	var refused *ingest.EventError
	if errors.As(err, &refused) {
		if refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests {
			// The same again would be refused again, such as an erased person's number. Of
			// others STOP counts all the same.
			return a.holderOf(ctx, s.account, e.From)
		}
		return "", false, &handler.Problem{Status: http.StatusServiceUnavailable, Message: refused.Message}
	}
	if err != nil {
		return "", false, err
	}
	return id.String(), true, nil
}

// holderOf finds the profile that has a phone number.
func (a *API) holderOf(ctx context.Context, account uint64, phone string) (profile string, found bool, err error) {
	err = a.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		var o uint32
		if o, found = v.Profiles().Find(resolver.IdentityPhone, phone); found {
			profile = v.Profiles().ID(o).String()
		}
		return nil
	})
	return profile, found, err
}

// recordReplies records texts one after the other: a person's "stop" must not overtake
// what they wrote before.
func (a *API) recordReplies(ctx context.Context, s *source, events []inbound.Event) (recorded int, err error) {
	for i := range events {
		ok, err := a.recordReply(ctx, s, &events[i])
		var refusal *resolver.Refusal
		switch {
		case errors.As(err, &refusal): // it was erased meanwhile, or unsubscribed after its START
		case err != nil:
			return recorded, err
		case ok:
			recorded++
		}
	}
	return recorded, nil
}

// withoutReplies takes the texts that people wrote out of events.
func withoutReplies(events []inbound.Event) (replies, others []inbound.Event) {
	for _, e := range events {
		if e.Type == inbound.Reply {
			replies = append(replies, e)
		} else {
			others = append(others, e)
		}
	}
	return replies, others
}

// inboundChallenge answers GET /inbound/{account}/{provider}, by which Meta asks whether
// the address is the account's: with what it was asked to repeat.
func (a *API) inboundChallenge(c *handler.Call) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), inboundTimeout)
	defer cancel()
	s, err := a.source(ctx, c)
	if err != nil {
		return nil, err
	}
	q := c.QueryArgs()
	if s.name != "whatsapp" || string(q.Peek("hub.mode")) != "subscribe" || !equal(s.config.VerifyToken, string(q.Peek("hub.verify_token"))) {
		return nil, errNotProvider
	}
	challenge := slices.Clone(q.Peek("hub.challenge"))
	if len(challenge) > 256 {
		return nil, handler.BadField("hub.challenge", "hub.challenge must have at most 256 bytes")
	}
	c.SetContentType("text/plain; charset=utf-8")
	c.Response.Header.Set("X-Content-Type-Options", "nosniff")
	c.SetBody(challenge)
	return handler.Streaming, nil
}

// inboundChallengeOperation describes [API.inboundChallenge].
func inboundChallengeOperation(fails shape.Ordered) operation.Operation {
	other := append(shape.Pairs("200", operation.Plain("What was to be repeated.", "text/plain", "", nil)), fails...)
	return operation.Operation{Method: "GET", Path: ReportPath + "{account}/{provider}", Permission: operation.Anybody, Raw: true, ID: "inboundChallenge", Summary: "Verify the address of a webhook",
		About: "By which Meta verifies the address that WhatsApp's webhooks go to. The answer is `hub.challenge` if `hub.verify_token` is the account's.",
		Query: []operation.Parameter{operation.Query("hub.mode", shape.Text("subscribe", "Always subscribe.")), operation.Query("hub.verify_token", shape.Text("a-long-enough-token", "The `verify_token` that was set.")), operation.Query("hub.challenge", shape.Text("1158201444", "What to answer."))},
		Other: other}
}
