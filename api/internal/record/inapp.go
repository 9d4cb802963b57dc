package record

import (
	"cmp"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/inapp"
)

// InAppMessage is a message of an inbox, as pages get it.
type InAppMessage struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`
	Body        string  `json:"body"`
	Image       *string `json:"image"`
	Link        *string `json:"link"`
	Display     string  `json:"display"`
	Priority    int     `json:"priority"`
	CreatedAt   string  `json:"created_at"`
	ExpiresAt   string  `json:"expires_at"`
	SeenAt      *string `json:"seen_at"`
	ClickedAt   *string `json:"clicked_at"`
	DismissedAt *string `json:"dismissed_at"`
}

// NewInAppMessage is a message of an inbox.
func NewInAppMessage(m *inapp.Message) InAppMessage {
	return InAppMessage{
		ID: m.ID, Title: m.Title, Body: m.Body, Image: TextOrNull(m.Image), Link: TextOrNull(m.Link), Display: cmp.Or(m.Display, card.Inbox), Priority: m.Priority,
		CreatedAt: Time(m.CreatedMs), ExpiresAt: Time(m.ExpiresMs), SeenAt: TimeOrNull(m.SeenMs), ClickedAt: TimeOrNull(m.ClickedMs), DismissedAt: TimeOrNull(m.DismissedMs),
	}
}

// InboxMessage is a message of an inbox with what sent it.
type InboxMessage struct {
	InAppMessage
	CampaignID *string `json:"campaign_id"`
	FlowID     *string `json:"flow_id"`
	StepID     *string `json:"step_id"`
}

// NewInboxMessage is a message of an inbox with what sent it.
func NewInboxMessage(m *inapp.Message) InboxMessage {
	return InboxMessage{NewInAppMessage(m), TextOrNull(m.Campaign), TextOrNull(m.Flow), TextOrNull(m.Step)}
}
