package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// answerEveryMs is the pause between two answers to one person by one channel: two programs
// that answer each other must not go on for ever.
const answerEveryMs = 60_000

// maxAnswerBytes bounds an answer.
const maxAnswerBytes = 4096

func (m *Machine) answerText(cmd *command, c messages.TextAnswer) *Refusal {
	a := cmd.account
	switch {
	case c.Channel != outbox.KindSMS && c.Channel != outbox.KindWhatsApp:
		return invalid("channel", "channel Input should be sms or whatsapp")
	case c.Text == "" || len(c.Text) > maxAnswerBytes:
		return invalid("text", "text must have 1 to %d bytes", maxAnswerBytes)
	case c.Key == "" || len(c.Key) > messages.MaxKeyBytes:
		return invalid("key", "key must have 1 to %d bytes", messages.MaxKeyBytes)
	}
	o, ok := a.resolveText(c.Profile)
	if !ok {
		return noProfile()
	}
	// Once for each text, and not too often.
	keys := [...][]byte{[]byte("answer\x00" + c.Channel + "\x00" + c.Key), []byte("answered\x00" + c.Channel + "\x00" + a.profiles.Headers.Get(o).ID.String())}
	for i, text := range keys {
		h := a.profiles.Hasher.HashIdempotencyKey(text, &m.normal)
		v, known, err := m.keys.Get(h)
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		if known && v.AtMs > a.keysFromMs(m.logTime) && (i == 0 || v.AtMs > m.logTime-answerEveryMs) {
			return nil
		}
	}
	payload := must.JSON(messages.Text{Text: c.Text, Answer: true})
	if _, r := a.outbox.Queue(m.tx(a), outbox.Item{Kind: c.Channel, Ordinal: o}, payload); r != nil {
		return r
	}
	for _, text := range keys {
		m.keys.Put(a.profiles.Hasher.HashIdempotencyKey(text, &m.normal), dedup.Answer{AtMs: m.logTime})
	}
	return nil
}
