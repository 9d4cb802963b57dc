package inbound

import (
	"fmt"
	"net/mail"
	"strings"
	"time"
)

// MailOptions name what our own messages carry. Zero values mean the defaults.
type MailOptions struct {
	// SendHeader is the header with our id of a message: X-Muster-Send-ID.
	SendHeader string
	// BounceUser and UnsubscribeUser are the local parts of the addresses to which
	// bounces and unsubscribe mails come: "bounce" and "unsubscribe". What follows a plus
	// sign there is the id of a message.
	BounceUser      string
	UnsubscribeUser string
}

func (o MailOptions) withDefaults() MailOptions {
	if o.SendHeader == "" {
		o.SendHeader = "X-Muster-Send-ID"
	}
	if o.BounceUser == "" {
		o.BounceUser = "bounce"
	}
	if o.UnsubscribeUser == "" {
		o.UnsubscribeUser = "unsubscribe"
	}
	o.SendHeader = strings.ToLower(o.SendHeader)
	return o
}

// ParseMail reads a raw mail that came to a bounce, complaint or unsubscribe
// address. No events and no error mean that it was understood and reports nothing
// to record: a delay, an automatic reply, a report of "not spam". Errors are
// ErrTooLarge and ErrNotRecognised.
//
// The events are claims; see the package's words on trust.
func ParseMail(raw []byte, opts MailOptions) ([]Event, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("mail has %d bytes; at most %d are read: %w", len(raw), MaxBytes, ErrTooLarge)
	}
	opts = opts.withDefaults()
	m := parseMail(raw)
	var events []Event
	ok := true
	if p := m.find("message/feedback-report"); p != nil {
		events = complaint(m, p, opts)
	} else if r, isReport := deliveryReport(m, opts); isReport {
		events = r.events()
	} else if e, isUnsub := unsubscribe(m, opts); isUnsub {
		events = e
	} else {
		events, ok = prose(m, opts)
	}
	if !ok {
		return nil, fmt.Errorf("mail: %w", ErrNotRecognised)
	}
	// The Message-ID of the mail itself identifies it over all paths it takes to us.
	id := messageID(m.header.get("message-id"))
	if id == "" {
		id = string(raw)
	}
	for i := range events {
		e := &events[i]
		e.ID = contentID("mail", id, string(e.Type), e.SendID, e.MessageID, strings.ToLower(e.Recipient), e.Status)
		if e.At.IsZero() {
			e.At = date(m.header.get("date"))
		}
	}
	return events, nil
}

// sendOf finds which message a mail is about: from the header it quotes, or from
// the address it came to.
func sendOf(m *part, original fields, opts MailOptions) (sendID, msgID string) {
	sendID = identifier(original.get(opts.SendHeader))
	msgID = messageID(original.get("message-id"))
	if sendID == "" {
		sendID = plusID(m.header, opts.BounceUser)
	}
	return sendID, msgID
}

// plusID finds user+id@… among the addresses a mail was sent to.
func plusID(h fields, user string) string {
	id, _ := addressee(h, user)
	return id
}

// addressee reports whether a mail was sent to user@… or user+id@…
func addressee(h fields, user string) (id string, ok bool) {
	for _, f := range h {
		switch f.name {
		case "to", "cc", "delivered-to", "x-original-to", "envelope-to", "x-envelope-to", "x-rcpt-to":
		default:
			continue
		}
		for i, one := range strings.Split(f.value, ",") {
			if i == 20 {
				break
			}
			local, _, found := strings.Cut(address(one), "@")
			if !found || len(local) < len(user) || !strings.EqualFold(local[:len(user)], user) {
				continue
			}
			rest := local[len(user):]
			if rest == "" {
				ok = true
			} else if rest[0] == '+' {
				if rest = identifier(rest[1:]); rest != "" {
					return rest, true
				}
				ok = true
			}
		}
	}
	return "", ok
}

// date reads a mail's time; what it cannot read is the zero time.
func date(text string) time.Time {
	if len(text) > 100 {
		return time.Time{}
	}
	at, err := mail.ParseDate(text)
	if err != nil {
		return time.Time{}
	}
	return sane(at)
}

// sane drops implausible times.
func sane(at time.Time) time.Time {
	if y := at.UTC().Year(); y < 1990 || y > 9998 {
		return time.Time{}
	}
	return at.UTC()
}
