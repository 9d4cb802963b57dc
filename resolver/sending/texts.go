package sending

import (
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// writtenPrecisionMs is how precisely providers say when a text was written.
const writtenPrecisionMs = 1000

// The versions of the rules from which on reports about texts are compared with earlier ones.
const (
	rulesFinal = 25 // the first final state of a text holds
	rulesWords = 25 // of STOP and START the one that was written last holds
)

// The final states of a text, as idempotency keys have them. A text that was read was delivered,
// although no report has said so.
const (
	finalDelivered = 1 + iota
	finalFailed
	finalRead
)

// final is the state in which a report says that a text has ended, 0 for one that says no such
// thing. Of e-mails it is no end: one that was delivered may bounce.
func final(c *messages.EngagementRecord) uint32 {
	if !isText(c.Channel) {
		return 0
	}
	switch c.Kind {
	case messages.EngagementDelivery:
		return finalDelivered
	case messages.EngagementFailed, messages.EngagementBounce, messages.EngagementSoftBounce:
		return finalFailed
	case messages.EngagementOpen:
		return finalRead
	}
	return 0
}

func isText(channel string) bool {
	return channel == outbox.KindSMS || channel == outbox.KindWhatsApp || channel == outbox.KindIM
}

// ending is a final state to be noted, none where state is 0.
type ending struct {
	key   identifier.Hash
	state uint32
}

// ends compares a report with those before on the same text. The first final state holds for as
// long as idempotency keys do: a report that contradicts it is refused, and repeated says that
// one is on record already.
func (s *State) ends(tx *feature.Tx, c *messages.EngagementRecord) (e ending, repeated bool, r *refuse.Refusal) {
	now := final(c)
	message, known := message(c.Send)
	if now == 0 || !known || tx.Rules < rulesFinal {
		return ending{}, false, nil
	}
	e = ending{s.profiles.Hasher.HashReportKey("final\x00"+c.Channel+"\x00"+string(message[:]), &s.normal), now}
	switch was := s.answer(e.key).Ordinal; {
	case was != 0 && (was == finalFailed) != (now == finalFailed):
		return e, false, refuse.Conflicts("kind", "the message has ended otherwise: of the reports that it was delivered and that it was not, the first holds")
	case now == finalRead:
		if was == finalDelivered {
			e.state = 0 // opens count as often as they come
		}
	case was == now:
		return e, true, nil
	}
	return e, false, nil
}

// noteEnd notes what [State.ends] returned.
func (s *State) noteEnd(tx *feature.Tx, e ending) {
	if e.state != 0 {
		s.keys.Put(e.key, dedup.Answer{AtMs: tx.AtMs, Ordinal: e.state})
	}
}

// message is the message that an id names, without what only links have in it.
func message(id messages.ID) (_ messages.ID, ok bool) {
	if campaign, ordinal, variant, ok := id.Campaign(); ok {
		return messages.CampaignSend(campaign, ordinal, variant), true
	}
	origin, ordinal, ok := id.Outbox()
	return messages.OutboxSend(origin, ordinal), ok
}

// Whether a person asked for messages by the last text that did either.
const (
	wordStart = 1 + iota
	wordStop
)

// refuseOlder refuses a STOP or START that a person wrote before another one, or before they
// unsubscribed in another way: an older text does not undo a newer one. Providers that do not say
// when a text was written cannot be compared; a STOP of theirs counts as written when it came.
func (s *State) refuseOlder(tx *feature.Tx, c *messages.EngagementRecord) *refuse.Refusal {
	start, words := c.Kind == messages.EngagementSubscribed, tx.Rules >= rulesWords
	if c.WrittenMs == 0 || c.Profile == "" || !start && !(words && isWord(c)) {
		return nil
	}
	channel, refusal := contacts.ChannelOf(c.Channel)
	if refusal != nil {
		return refusal
	}
	o, d, refusal := s.host.Profile(c.Profile)
	if refusal != nil {
		return refusal
	}
	var last, came dedup.Answer
	if words {
		last, came = s.answer(s.wordKey(o, wordWritten, c.Channel)), s.answer(s.wordKey(o, wordCame, c.Channel))
	}
	consent := d.ConsentOf(channel)
	switch {
	case last.Ordinal != 0 && c.WrittenMs < last.AtMs:
		return refuse.Conflicts("written_ms", "the person wrote another STOP or START after this one")
	case !start || consent == nil || consent.Status != profile.ConsentUnsubscribed:
	case last.Ordinal == wordStop && came.AtMs == consent.SinceMs:
		// They unsubscribed by that STOP. It counts when it was written, and not when it came.
	case c.WrittenMs+writtenPrecisionMs <= consent.SinceMs:
		return refuse.Conflicts("written_ms", "the person unsubscribed after this text was written")
	}
	return nil
}

// noteWord notes a STOP or START of a profile, whose document is as it was before.
func (s *State) noteWord(tx *feature.Tx, o uint32, d *profile.Document, c *messages.EngagementRecord) {
	if tx.Rules < rulesWords || !isWord(c) || c.WrittenMs == 0 && c.Kind == messages.EngagementSubscribed {
		return
	}
	word := dedup.Answer{AtMs: tx.AtMs, Ordinal: wordStart}
	if c.WrittenMs != 0 {
		word.AtMs = min(tx.AtMs, c.WrittenMs) // clocks of providers may be ahead
	}
	if c.Kind == messages.EngagementUnsubscribed {
		word.Ordinal = wordStop
	}
	cameKey, came := s.wordKey(o, wordCame, c.Channel), dedup.Answer{AtMs: tx.AtMs, Ordinal: word.Ordinal}
	if channel, r := contacts.ChannelOf(c.Channel); r == nil && word.Ordinal == wordStop {
		// A further STOP changes nothing: they are unsubscribed since the first one came.
		if x, was := d.ConsentOf(channel), s.answer(cameKey); x != nil && x.Status == profile.ConsentUnsubscribed && was == (dedup.Answer{AtMs: x.SinceMs, Ordinal: wordStop}) {
			came = was
		}
	}
	s.keys.Put(s.wordKey(o, wordWritten, c.Channel), word)
	s.keys.Put(cameKey, came)
}

// isWord reports whether a person unsubscribed, or subscribed again, by a text of their own. Who
// does so by a message of the account, by a link or at the provider, is known by its id.
func isWord(c *messages.EngagementRecord) bool { return isText(c.Channel) && c.Send == messages.ID{} }

// What is known of the last STOP or START of a profile.
const (
	wordWritten = "written"
	wordCame    = "came"
)

// wordKey is the key of an instant: when the last STOP or START was written, and when it came.
func (s *State) wordKey(ordinal uint32, what, channel string) identifier.Hash {
	return s.profiles.Hasher.HashReportKey("word\x00"+what+"\x00"+channel+"\x00"+s.profiles.Headers.Get(ordinal).ID.String(), &s.normal)
}

// answer is what an idempotency key leads to, the zero answer where it holds no more.
func (s *State) answer(h identifier.Hash) dedup.Answer {
	v, ok, err := s.keys.Get(h)
	switch {
	case err != nil:
		panic(err) // the store is at fault; the record is named
	case !ok || v.AtMs <= s.host.KeysFromMs():
		return dedup.Answer{}
	}
	return v
}
