package shop

import (
	"encoding/json"
	"fmt"
	"time"
)

// The event types of the shop.
const (
	signedUp      = "signed_up"
	confirmed     = "email_confirmed"
	pageViewed    = "page_viewed"
	productViewed = "product_viewed"
	addedToCart   = "item_added_to_cart"
	purchased     = "item_purchased"
	returned      = "item_returned"
	subscribed    = "newsletter_subscribed"
	clicked       = "newsletter_clicked"
)

// event is one line of the history.
type event struct {
	EventType  string         `json:"event_type"`
	User       person         `json:"user"`
	Properties map[string]any `json:"properties,omitempty"`
	Timestamp  string         `json:"timestamp"`

	atMs  int64
	order int // among events of the same instant
	who   *customer
	cents int64
}

// person is the user of an event.
type person struct {
	Email      string         `json:"email,omitempty"`
	ExternalID string         `json:"external_id,omitempty"`
	Phone      string         `json:"phone,omitempty"`
	FirstName  string         `json:"first_name,omitempty"`
	LastName   string         `json:"last_name,omitempty"`
	Geo        *place         `json:"geo,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

type place struct {
	Country string `json:"country"`
	City    string `json:"city"`
}

func (e *event) line() ([]byte, error) {
	e.Timestamp = time.UnixMilli(e.atMs).UTC().Format(time.RFC3339)
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	return append(b, '\n'), nil
}

// amount is an exact JSON number of euros.
func amount(cents int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%02d", cents/100, cents%100))
}

// queue orders events by time; it is a heap (container/heap).
type queue []*event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].atMs < q[j].atMs || q[i].atMs == q[j].atMs && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
