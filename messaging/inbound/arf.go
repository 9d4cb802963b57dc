package inbound

import (
	"bytes"
	"strings"
)

// complaint reads a feedback report (RFC 5965).
func complaint(m, p *part, opts MailOptions) []Event {
	var g fields
	for _, one := range groups(p.text()) {
		g = append(g, one...)
	}
	e := Event{Type: Complaint}
	switch kind := strings.ToLower(g.get("feedback-type")); kind {
	case "not-spam", "auth-failure":
		return nil // praise, and reports on signatures
	case "opt-out", "opt-out-list":
		e.Type = Unsubscribe
		e.Reason = kind
	default: // abuse, fraud, virus, other, and what is to come
		e.Reason = line(kind, maxReason)
	}
	original := m.original()
	e.SendID, e.MessageID = sendOf(m, original, opts)
	if e.SendID == "" {
		// The envelope sender of the message: our own bounce address.
		e.SendID = plusID(fields{{"to", g.get("original-mail-from")}}, opts.BounceUser)
	}
	for _, f := range g {
		if f.name == "original-rcpt-to" || f.name == "removal-recipient" {
			if e.Recipient = typedAddress(f.value); e.Recipient != "" {
				break
			}
		}
	}
	if e.Recipient == "" {
		e.Recipient = address(original.get("to"))
	}
	if e.At = date(g.get("arrival-date")); e.At.IsZero() {
		e.At = date(g.get("received-date"))
	}
	return []Event{e}
}

// unsubscribe reads a mail to the unsubscribe address: its id after the plus sign,
// or a token as the last word of the subject.
func unsubscribe(m *part, opts MailOptions) (events []Event, ok bool) {
	id, ok := addressee(m.header, opts.UnsubscribeUser)
	if !ok {
		return nil, false
	}
	if auto := strings.ToLower(m.header.get("auto-submitted")); auto != "" && auto != "no" {
		return nil, true // out of office, or a bounce in other clothes
	}
	e := Event{Type: Unsubscribe, SendID: id, Recipient: address(m.header.get("from"))}
	words := strings.Fields(m.header.get("subject"))
	if len(words) == 0 {
		words = strings.Fields(string(firstLine(m)))
	}
	if len(words) > 0 {
		if t := identifier(words[len(words)-1]); len(t) >= 40 && len(t) <= 200 {
			e.Token = t
		}
	}
	return []Event{e}, true
}

func firstLine(m *part) []byte {
	p := m.find("text/plain")
	if p == nil {
		return nil
	}
	ln, _ := cutLine(bytes.TrimSpace(p.text()))
	return ln[:min(len(ln), 1000)]
}
