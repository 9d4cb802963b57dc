package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WhatsApp reads the webhooks of Meta's WhatsApp Cloud API: texts of people, what became of
// messages, and who wants no advertising any more.
type WhatsApp struct {
	// AppSecret signs the webhooks.
	AppSecret string
	// PhoneNumberID is the business's number; webhooks about others are passed over. ""
	// takes all.
	PhoneNumberID string
}

var _ Provider = WhatsApp{}

// String hides the secret.
func (WhatsApp) String() string { return "whatsapp" }

// GoString hides the secret from %#v.
func (WhatsApp) GoString() string { return "whatsapp" }

// whatsAppDead are error codes that say that the number gets nothing, ever.
var whatsAppDead = map[int]bool{131021: true}

// whatsAppOptedOut is the error code that says that the person wants no advertising.
const whatsAppOptedOut = 131050

// whatsAppValue is what one change of a webhook says.
type whatsAppValue struct {
	Metadata struct {
		Number text `json:"display_phone_number"`
		ID     text `json:"phone_number_id"`
	} `json:"metadata"`
	Messages []struct {
		From   text `json:"from"`
		ID     text `json:"id"`
		At     text `json:"timestamp"`
		Type   text `json:"type"`
		Text   body `json:"text"`
		Button struct {
			Text text `json:"text"`
		} `json:"button"`
		Interactive struct {
			Button title `json:"button_reply"`
			List   title `json:"list_reply"`
		} `json:"interactive"`
		Image    caption `json:"image"`
		Video    caption `json:"video"`
		Document caption `json:"document"`
	} `json:"messages"`
	Statuses []struct {
		ID     text `json:"id"`
		Status text `json:"status"`
		At     text `json:"timestamp"`
		To     text `json:"recipient_id"`
		SendID text `json:"biz_opaque_callback_data"`
		Errors []struct {
			Code    int  `json:"code"`
			Title   text `json:"title"`
			Message text `json:"message"`
			Data    struct {
				Details text `json:"details"`
			} `json:"error_data"`
		} `json:"errors"`
	} `json:"statuses"`
	Preferences []struct {
		ID       text        `json:"wa_id"`
		Category text        `json:"category"`
		Value    text        `json:"value"`
		At       json.Number `json:"timestamp"`
	} `json:"user_preferences"`
}

type body struct {
	Body text `json:"body"`
}

type title struct {
	Title text `json:"title"`
}

type caption struct {
	Caption text `json:"caption"`
}

// Parse is Provider's.
func (w WhatsApp) Parse(_ context.Context, _ time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("whatsapp: %w", err)
	}
	got, err := hex.DecodeString(strings.TrimPrefix(r.Header("X-Hub-Signature-256"), "sha256="))
	h := hmac.New(sha256.New, []byte(w.AppSecret))
	h.Write(r.Body)
	if err != nil || w.AppSecret == "" || !hmac.Equal(got, h.Sum(nil)) {
		return Batch{}, fmt.Errorf("whatsapp: X-Hub-Signature-256 does not match the app secret: %w", ErrUnauthorised)
	}
	var in struct {
		Entry []struct {
			Changes []struct {
				Field text          `json:"field"`
				Value whatsAppValue `json:"value"`
			} `json:"changes"`
		} `json:"entry"`
	}
	if err := decode("body", r.Body, &in); err != nil {
		return Batch{}, fmt.Errorf("whatsapp: %w", err)
	}
	var b Batch
	for _, entry := range in.Entry {
		for i := range entry.Changes {
			v := &entry.Changes[i].Value
			if w.PhoneNumberID != "" && string(v.Metadata.ID) != w.PhoneNumberID {
				continue
			}
			events, withoutNumber := v.events()
			b.Events, b.WithoutNumber = append(b.Events, events...), b.WithoutNumber+withoutNumber
			if len(b.Events) > MaxEvents {
				return Batch{}, fmt.Errorf("whatsapp: body holds over %d events: %w", MaxEvents, ErrTooLarge)
			}
		}
	}
	return b, nil
}

// events are those of a change, and how many texts and settings have no number: people may
// hide theirs, and are known to the business by a user id alone then.
func (v *whatsAppValue) events() (out []Event, withoutNumber int) {
	add := func(e Event, id string) {
		e.Channel = ChannelWhatsApp
		switch e = e.trim(); {
		case e.From != "" || e.SendID != "" || e.Phone != "":
			e.ID = providerID("whatsapp", id)
			out = append(out, e)
		case e.Type == Reply:
			withoutNumber++
		}
	}
	for _, m := range v.Messages {
		words := m.Text.Body
		for _, other := range []text{m.Button.Text, m.Interactive.Button.Title, m.Interactive.List.Title, m.Image.Caption, m.Video.Caption, m.Document.Caption} {
			if words == "" {
				words = other
			}
		}
		switch m.Type {
		case "system", "reaction", "unsupported", "unknown":
			continue // not written by a person
		}
		add(Event{Type: Reply, From: international(string(m.From)), To: international(string(v.Metadata.Number)), Text: string(words), At: seconds(string(m.At))}, string(m.ID))
	}
	for _, s := range v.Statuses {
		e := Event{SendID: string(s.SendID), Phone: international(string(s.To)), At: seconds(string(s.At))}
		switch s.Status {
		case "delivered":
			e.Type = Delivery
		case "read":
			e.Type = Open
		case "failed":
			e.Type, e.Reason = Failure, "WhatsApp could not deliver the message"
			if len(s.Errors) > 0 {
				x := s.Errors[0]
				words := x.Data.Details
				for _, other := range []text{x.Message, x.Title} {
					if words == "" {
						words = other
					}
				}
				e.Hard, e.Reason = whatsAppDead[x.Code], fmt.Sprintf("WhatsApp error %d: %s", x.Code, words)
			}
		default:
			continue // on its way
		}
		add(e, string(s.ID)+":"+string(s.Status))
		if s.Status == "failed" && len(s.Errors) > 0 && s.Errors[0].Code == whatsAppOptedOut {
			add(Event{Type: Unsubscribe, SendID: e.SendID, Phone: e.Phone, At: e.At, Reason: e.Reason}, string(s.ID)+":opted_out")
		}
	}
	for _, p := range v.Preferences {
		if p.Category != "marketing_messages" || p.Value != "stop" && p.Value != "resume" {
			continue
		}
		e := Event{Type: Reply, From: international(string(p.ID)), Keyword: KeywordStop, Answered: true, Preference: true, At: seconds(p.At.String())}
		if p.Value == "resume" {
			e.Keyword = KeywordStart
		}
		add(e, string(p.ID)+":"+string(p.Value)+":"+p.At.String())
	}
	return out, withoutNumber
}

// international writes a number as WhatsApp gives it with a plus sign.
func international(number string) string {
	digits := strings.TrimPrefix(number, "+")
	if digits == "" {
		return ""
	}
	return "+" + digits
}

// seconds reads Unix seconds; anything else is the zero time.
func seconds(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return time.Time{}
	}
	return sane(time.Unix(n, 0))
}
