package sending

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// AnswerEveryMs is the pause between two answers to one person by one channel: two programs
// that answer each other must not continue for ever.
const AnswerEveryMs = 60_000

// maxAnswerBytes bounds an answer.
const maxAnswerBytes = 4096

func (s *State) answerText(tx *feature.Tx, c messages.TextAnswer) *refuse.Refusal {
	switch {
	case c.Channel != outbox.KindSMS && c.Channel != outbox.KindWhatsApp:
		return refuse.Invalid("channel", "channel Input should be sms or whatsapp")
	case c.Text == "" || len(c.Text) > maxAnswerBytes:
		return refuse.Invalid("text", "text must have 1 to %d bytes", maxAnswerBytes)
	case c.Key == "" || len(c.Key) > messages.MaxKeyBytes:
		return refuse.Invalid("key", "key must have 1 to %d bytes", messages.MaxKeyBytes)
	}
	id, ok := profile.ParseID(c.Profile)
	o := profile.NoOrdinal
	if ok {
		o, ok = s.profiles.Find(id)
	}
	if !ok {
		return resolution.NoProfile()
	}
	// Once for each text, and not too often.
	keys := [...][]byte{[]byte("answer\x00" + c.Channel + "\x00" + c.Key), []byte("answered\x00" + c.Channel + "\x00" + s.profiles.Headers.Get(o).ID.String())}
	for i, text := range keys {
		h := s.profiles.Hasher.HashIdempotencyKey(text, &s.normal)
		v, known, err := s.keys.Get(h)
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		if known && v.AtMs > s.host.KeysFromMs() && (i == 0 || v.AtMs > tx.AtMs-AnswerEveryMs) {
			return nil
		}
	}
	payload := must.JSON(messages.Text{Text: c.Text, Answer: true, Start: c.Start})
	if _, r := s.outbox.Queue(tx, outbox.Item{Kind: c.Channel, Ordinal: o}, payload); r != nil {
		return r
	}
	for _, text := range keys {
		s.keys.Put(s.profiles.Hasher.HashIdempotencyKey(text, &s.normal), dedup.Answer{AtMs: tx.AtMs})
	}
	return nil
}
