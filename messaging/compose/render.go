package compose

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// Links makes the links of messages that the service answers itself.
type Links struct {
	// Base is where the service is reached, without a slash at the end.
	Base    string
	Account uint64
	Key     tracking.Key
	// Flow and Step say which step of which flow the message is of, "" for none.
	Flow, Step string
}

// URL is the link of a message. kind says what it does.
func (l Links) URL(kind tracking.Kind, send messages.ID, link int) string {
	return l.Key.URL(l.Base, l.claims(kind, send, link))
}

func (l Links) claims(kind tracking.Kind, send messages.ID, link int) tracking.Claims {
	return tracking.Claims{Kind: kind, Account: l.Account, Send: tracking.ID(send), Link: uint16(link), Flow: l.Flow, Step: l.Step}
}

// clickTo is the link that counts a click and leads to a location, of a message
// whose links stand in no table. What is too long for a link of ours is not
// counted.
func (l Links) clickTo(send messages.ID, link int, location string) string {
	if len(location) > tracking.MaxURLBytes {
		return location
	}
	c := l.claims(tracking.Click, send, link)
	c.URL = location
	return l.Key.URL(l.Base, c)
}

// ProfileValues answers the merge tags that speak of a profile: its names,
// identifiers, and whatever stands in geo and attributes.
func ProfileValues(p *view.Profile) merge.Lookup {
	return func(path []string) (string, bool) {
		if len(path) == 1 {
			switch path[0] {
			case "first_name":
				return p.FirstName, p.FirstName != ""
			case "last_name":
				return p.LastName, p.LastName != ""
			case "email":
				return one(p.Newest(resolver.IdentityEmail))
			case "phone":
				return one(p.Newest(resolver.IdentityPhone))
			case "external_id":
				return one(p.Newest(resolver.IdentityExternalID))
			case "profile_id":
				return p.ID.String(), true
			}
		}
		if len(path) > 1 {
			switch path[0] {
			case "geo":
				return rawjson.Scalar(p.Geo, path[1:])
			case "attributes":
				return rawjson.Scalar(p.Attributes, path[1:])
			}
		}
		return "", false
	}
}

func one(s string) (string, bool) { return s, s != "" }

// Values answers the merge tags of a message: the recipient's links, and what is
// known of the profile.
func (c *Compiled) Values(l Links, p *view.Profile, send messages.ID) merge.Lookup {
	profile := ProfileValues(p)
	return func(path []string) (string, bool) {
		switch path[0] {
		case TagUnsubscribe:
			return l.URL(tracking.Unsubscribe, send, 0), true
		case TagPreferences:
			return l.URL(tracking.Preferences, send, 0), true
		case TagOpen:
			return l.URL(tracking.Open, send, 0), true
		case TagClick:
			n, ok := clickTag(path, len(c.links))
			if !ok {
				return "", false
			}
			return l.URL(tracking.Click, send, n), true
		}
		return profile(path)
	}
}

// clickTag is the number of the link that a merge tag stands for, one of so many.
func clickTag(path []string, links int) (n int, ok bool) {
	if len(path) != 2 || path[0] != TagClick {
		return 0, false
	}
	n, err := strconv.Atoi(path[1])
	return n, err == nil && n >= 0 && n < links
}

// Email makes the e-mail of one recipient. at is the time it says it was sent.
func (c *Compiled) Email(l Links, p *view.Profile, send messages.ID, campaign string, at time.Time, keys []*email.Key) (*email.Message, error) {
	values := c.Values(l, p, send)
	id := hex.EncodeToString(send[:])
	m := &email.Message{
		ID:      MessageID(l.Account, id, c.Sender),
		Date:    at,
		From:    email.Address{Addr: c.Sender},
		ReplyTo: email.Address{Addr: c.ReplyTo},
		To:      email.Address{Name: strings.TrimSpace(p.FirstName + " " + p.LastName), Addr: p.Newest(resolver.IdentityEmail)},
		SendID:  SendText(l.Account, send),
		Keys:    keys,
	}
	m.Unsubscribe.URL = l.URL(tracking.Unsubscribe, send, 0)
	if campaign != "" {
		m.FeedbackID = campaign + ":" + resolver.AccountID(l.Account) + ":muster"
	}
	if err := c.Fill(m, values); err != nil {
		return nil, err
	}
	return m, nil
}

// MessageID is the Message-ID of a message, under the sender's domain in ASCII.
func MessageID(account uint64, id, sender string) string {
	if ascii, err := email.CheckAddress(sender); err == nil {
		sender = ascii
	}
	return fmt.Sprintf("%016x.%s@%s", account, id, DomainOf(sender))
}

// Fill renders the texts of a message.
func (c *Compiled) Fill(m *email.Message, values merge.Lookup) error {
	for _, f := range []struct {
		t   *merge.Template
		dst *string
	}{{c.SubjectTemplate, &m.Subject}, {c.name, &m.From.Name}, {c.html, &m.HTML}, {c.TextTemplate, &m.Text}} {
		text, err := f.t.Render(values)
		if err != nil {
			return err
		}
		*f.dst = text
	}
	return nil
}

// SendText is a message's id as headers and providers carry it.
func SendText(account uint64, send messages.ID) string { return send.Text(account) }

// ParseSend reads what [SendText] wrote.
func ParseSend(s string) (account uint64, send messages.ID, ok bool) {
	left, right, found := strings.Cut(s, "-")
	if !found || len(left) != 16 || len(right) != 2*len(send) {
		return 0, send, false
	}
	if _, err := fmt.Sscanf(left, "%016x", &account); err != nil {
		return 0, send, false
	}
	_, err := hex.Decode(send[:], []byte(right))
	return account, send, err == nil
}

func DomainOf(address string) string {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == '@' {
			return address[i+1:]
		}
	}
	return ""
}

// WithClicks answers the merge tags of links whose clicks are counted, and asks values for
// all others. Nothing remembers where the links of a single message lead: each carries it.
func (c *Compiled) WithClicks(l Links, send messages.ID, values merge.Lookup) merge.Lookup {
	return func(path []string) (string, bool) {
		if n, is := clickTag(path, len(c.links)); is {
			return c.Click(n, l, send, values), true
		}
		return values(path)
	}
}

// Click is the link of a message that counts a click on link n and carries where
// it leads.
func (c *Compiled) Click(n int, l Links, send messages.ID, values merge.Lookup) string {
	rendered, err := c.links[n].Render(values)
	if err == nil {
		rendered, err = tracking.Location(c.Links[n], rendered)
	}
	if err != nil {
		return "#" // as a click on it would lead nowhere
	}
	return l.clickTo(send, n, rendered)
}

// EventValues answers the merge tags event.… from what started a flow, and asks
// next for all others.
func EventValues(event json.RawMessage, next merge.Lookup) merge.Lookup {
	return func(path []string) (string, bool) {
		if len(path) > 1 && path[0] == "event" {
			return rawjson.Scalar(event, path[1:])
		}
		return next(path)
	}
}
