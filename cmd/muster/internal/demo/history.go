package demo

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/shop"
)

// history is the shop's past, and what is to happen.
type history struct {
	past   []byte // JSON lines
	future []event
	people []person
}

// event is a line of the history.
type event struct {
	EventType  string          `json:"event_type"`
	User       person          `json:"user"`
	Properties json.RawMessage `json:"properties,omitempty"`
	Timestamp  string          `json:"timestamp,omitempty"`

	at time.Time
}

// person is the user of an event.
type person struct {
	Email      string          `json:"email,omitempty"`
	ExternalID string          `json:"external_id,omitempty"`
	Phone      string          `json:"phone,omitempty"`
	FirstName  string          `json:"first_name,omitempty"`
	LastName   string          `json:"last_name,omitempty"`
	Geo        json.RawMessage `json:"geo,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// newHistory makes the history around an instant.
func newHistory(o *Options) (*history, error) {
	now := o.Now().UTC()
	var text bytes.Buffer
	_, err := shop.Generate(&text, shop.Options{Customers: o.Customers, Orders: o.Orders, Days: pastDays + futureDays, Seed: o.Seed,
		Until: now.Truncate(24*time.Hour).AddDate(0, 0, futureDays)})
	if err != nil {
		return nil, err
	}
	h := &history{}
	if err := h.split(text.Bytes(), now); err != nil {
		return nil, fmt.Errorf("the history: %w", err)
	}
	return h, nil
}

// split takes the lines of a history apart at an instant. They are in order of time.
func (h *history) split(text []byte, now time.Time) error {
	known := map[string]*person{} // by external id
	var order []*person
	for rest := text; len(rest) > 0; {
		line, behind, _ := bytes.Cut(rest, []byte("\n"))
		rest = behind
		introduces := bytes.Contains(line[:min(len(line), 40)], []byte(`"signed_up"`)) || bytes.Contains(line[:min(len(line), 40)], []byte(`"email_confirmed"`))
		at, err := timeOf(line)
		if err != nil {
			return err
		}
		past := at.Before(now)
		if past {
			h.past = text[:len(text)-len(behind)]
			if !introduces {
				continue
			}
		}
		e := event{at: at}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if !past {
			e.Timestamp = ""
			h.future = append(h.future, e)
			continue
		}
		p := known[e.User.ExternalID]
		if p == nil {
			p = &person{}
			known[e.User.ExternalID] = p
			order = append(order, p)
		}
		p.add(&e.User)
	}
	// People with both an e-mail and an account can be on the list.
	for _, p := range order {
		if p.Email != "" && p.FirstName != "" {
			h.people = append(h.people, *p)
		}
	}
	return nil
}

// timeOf reads the time of a line, which ends it, without reading the rest.
func timeOf(line []byte) (time.Time, error) {
	const before = `"timestamp":"`
	i := bytes.LastIndex(line, []byte(before))
	if i < 0 {
		return time.Time{}, fmt.Errorf("a line without a time: %.100s", line)
	}
	text, _, _ := bytes.Cut(line[i+len(before):], []byte(`"`))
	return time.Parse(time.RFC3339, string(text))
}

func (p *person) add(u *person) {
	for _, f := range [][2]*string{{&p.Email, &u.Email}, {&p.ExternalID, &u.ExternalID}, {&p.FirstName, &u.FirstName}, {&p.LastName, &u.LastName}} {
		if *f[1] != "" {
			*f[0] = *f[1]
		}
	}
}

// csv is a file of subscribers as a newsletter tool writes it, with rows that are wrong.
func (h *history) csv(most int) (text string, rows int, err error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	list := [][]string{{"E-mail", "First name", "Last name", "Customer ID", "Loyalty number", "Source"}}
	for i, p := range h.people[:min(len(h.people), most)] {
		source := []string{"footer form", "checkout", "spring fair"}[i%3]
		list = append(list, []string{p.Email, p.FirstName, p.LastName, p.ExternalID, fmt.Sprint(int64(4_026_000_000_000_000_000) + int64(i)*7919), source})
	}
	list = append(list, []string{"", "No", "Address", "", "", "footer form"}, []string{"null", "Unknown", "", "", "", "spring fair"})
	for _, row := range list {
		if err := w.Write(row); err != nil {
			return "", 0, err
		}
	}
	w.Flush()
	return b.String(), len(list) - 1, w.Error()
}
