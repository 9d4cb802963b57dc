package inbound

import (
	"encoding/hex"
	"strings"
	"time"
)

// Report is a delivery status report.
type Report struct {
	SendID     string // of the message it is about, if it tells
	MessageID  string
	Recipients []Recipient
}

// Recipient is the part of a report about one recipient.
type Recipient struct {
	Original   string // the address it was sent to, if told
	Final      string // the address that failed, after forwarding
	Action     string // failed, delayed, delivered, relayed or expanded
	Status     string // enhanced status code
	Diagnostic string // one line
	Hard       bool
	At         time.Time
}

// Address is the one the message was sent to, as far as is known.
func (r Recipient) Address() string {
	if r.Original != "" {
		return r.Original
	}
	return r.Final
}

// ParseReport reads a delivery status report (RFC 3464). ok is false when raw is none.
func ParseReport(raw []byte, opts MailOptions) (r Report, ok bool) {
	if len(raw) > MaxBytes {
		return Report{}, false
	}
	return deliveryReport(parseMail(raw), opts.withDefaults())
}

func deliveryReport(m *part, opts MailOptions) (r Report, ok bool) {
	p := m.find("message/delivery-status", "message/global-delivery-status")
	if p == nil {
		return Report{}, false
	}
	original := m.original()
	r.SendID, r.MessageID = sendOf(m, original, opts)
	var perMessage fields
	for i, g := range groups(p.text()) {
		final, first := g.get("final-recipient"), g.get("original-recipient")
		if final == "" && first == "" && g.get("action") == "" {
			if i == 0 {
				perMessage = g
			}
			continue
		}
		rc := Recipient{
			Original:   typedAddress(first),
			Final:      typedAddress(final),
			Action:     action(g.get("action")),
			Diagnostic: line(typedText(g.get("diagnostic-code")), maxReason),
		}
		rc.Status = enhancedStatus(g.get("status"))
		if rc.Action == "" {
			rc.Action = actionOf(rc.Status)
		}
		if rc.At = date(g.get("last-attempt-date")); rc.At.IsZero() {
			rc.At = date(perMessage.get("arrival-date"))
		}
		if rc.Address() == "" {
			// Some leave the address out of the report but not out of the mail.
			if a := address(m.header.get("x-failed-recipients")); a != "" {
				rc.Final = a
			} else {
				rc.Final = address(original.get("to"))
			}
		}
		if rc.Action == "failed" {
			code, hard, _ := verdict(rc.Status, rc.Diagnostic)
			rc.Status, rc.Hard = code, hard
		}
		r.Recipients = append(r.Recipients, rc)
	}
	return r, len(r.Recipients) > 0
}

func (r Report) events() []Event {
	var out []Event
	for _, rc := range r.Recipients {
		e := Event{SendID: r.SendID, MessageID: r.MessageID, Recipient: rc.Address(), Status: rc.Status, At: rc.At}
		switch rc.Action {
		case "failed":
			e.Type, e.Hard, e.Reason = Bounce, rc.Hard, rc.Diagnostic
		case "delivered":
			e.Type = Delivery
		default:
			continue // still under way, or out of sight
		}
		out = append(out, e)
	}
	return out
}

func action(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(text)), " ")
	switch text {
	case "failed", "delayed", "delivered", "relayed", "expanded":
		return text
	case "failure":
		return "failed"
	}
	return ""
}

func actionOf(status string) string {
	switch {
	case strings.HasPrefix(status, "5"):
		return "failed"
	case strings.HasPrefix(status, "4"):
		return "delayed"
	case strings.HasPrefix(status, "2"):
		return "delivered"
	}
	return ""
}

// typedAddress reads "rfc822; user@example.com"; the type may be missing.
func typedAddress(text string) string {
	kind, rest, ok := strings.Cut(text, ";")
	if !ok {
		return address(text)
	}
	a := address(rest)
	if strings.Contains(a, "+") && strings.EqualFold(strings.TrimSpace(kind), "rfc822") {
		return address(xtext(a))
	}
	return a
}

func typedText(text string) string {
	if kind, rest, ok := strings.Cut(text, ";"); ok && !strings.ContainsAny(strings.TrimSpace(kind), " <") {
		return rest
	}
	return text
}

// xtext undoes the encoding of addresses in reports (RFC 3461): +2B is a plus sign.
// An address whose plus sign was not encoded stays as it is.
func xtext(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '+' && i+2 < len(text) {
			hexes := text[i+1 : i+3]
			if c, err := hex.DecodeString(hexes); err == nil && hexes == strings.ToUpper(hexes) && (c[0] == '+' || c[0] == '=') {
				b.WriteByte(c[0])
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
