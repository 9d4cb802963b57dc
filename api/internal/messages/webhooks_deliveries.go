package messages

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/outbox"
)

// maxBodyShown bounds the body of a delivery that is shown, in bytes.
const maxBodyShown = 64 << 10

// deliveryRoutes are the calls of the log of deliveries. Bodies hold what was sent of
// people, so the call that shows them needs the permission by which one could have them
// sent elsewhere.
func (a *API) deliveryRoutes() []handler.Route {
	attempt := shape.Named("WebhookAttempt", shape.Object(
		shape.Req("number", shape.Count(1, "From 1, replays counted on.")), shape.Req("at", shape.Instant("When its outcome was recorded.")), shape.Req("duration_ms", shape.Count(84, "")),
		shape.Req("status_code", shape.Count(500, "Of the answer.").OrNull()), shape.Req("error", shape.Text("the receiver answered 500", "Empty for a delivery that was taken.")),
	))
	line := shape.Object(
		shape.Req("_id", shape.Text("msg_3f9a7c2e5d1b8046_17", "The header webhook-id of all its attempts.")), shape.Req("event", shape.Text("email.opened", "")),
		shape.Req("status", shape.Word("waiting: for its next attempt; failed: given up.", outbox.DeliveryDelivered, outbox.DeliveryWaiting, outbox.DeliveryFailed)),
		shape.Req("created_at", shape.Instant("When it was queued.")), shape.Req("attempts", shape.Count(2, "")), shape.Req("last_attempt", attempt),
		shape.Req("next_attempt_at", shape.Instant("Null when there is none.").OrNull()), shape.Req("dead_letter", shape.Count(17, "The number of its dead letter.").OrNull()),
	)
	whole := line.Plus(
		shape.Req("log", shape.List(shape.Named("WebhookAttemptDetails", attempt.Plus(shape.Req("answer", shape.Text("upstream timed out", "How the body of the answer begins, up to 1 KiB.")))), "The newest 20 attempts, the oldest first.")),
		shape.Req("body", shape.Text(`{"type":"email.opened","timestamp":"2025-03-01T12:00:00Z","data":{}}`, "What is sent, up to 64 KiB.")), shape.Req("body_bytes", shape.Count(69, "How long the whole body is.")),
	)
	return []handler.Route{
		{Handle: a.listDeliveries, Operation: operation.Operation{Method: "GET", Path: "/webhooks/{id}/deliveries", Permission: "settings:read", ID: "listDeliveries", Summary: "List deliveries",
			About: "The newest 1,000 of an endpoint with their last attempt, the one first attempted last first. What was delivered makes way for what was not, up to half of them. What waits for its first attempt is not among them.",
			Query: []operation.Parameter{operation.Query("status", shape.Word("Those of a status alone.", outbox.DeliveryDelivered, outbox.DeliveryWaiting, outbox.DeliveryFailed))}, Data: shape.List(shape.Named("WebhookDelivery", line), ""), Paged: true}},
		{Handle: a.getDelivery, Operation: operation.Operation{Method: "GET", Path: "/webhooks/{id}/deliveries/{delivery}", Permission: "settings:write", ID: "getDelivery", Summary: "Read a delivery", About: "With its attempts, the body, and how the receiver's answers begin. It takes settings:write because bodies hold data of people.", Data: shape.Named("WebhookDeliveryDetails", whole)}},
		{Handle: a.redeliver, Operation: operation.Operation{Method: "POST", Path: "/webhooks/{id}/deliveries/{delivery}/redeliver", Permission: "settings:write", ID: "redeliver", Summary: "Redeliver", About: "Under the same webhook-id. One that waits for its next attempt is tried now; a dead letter is replayed.",
			Data: shape.Object(shape.Req("status", shape.Word("", "queued")))}},
	}
}

// Delivery is one of the log, as it is answered.
type Delivery struct {
	ID            string          `json:"_id"`
	Event         string          `json:"event"`
	Status        string          `json:"status"`
	CreatedAt     string          `json:"created_at"`
	Attempts      int             `json:"attempts"`
	LastAttempt   deliveryAttempt `json:"last_attempt"`
	NextAttemptAt *string         `json:"next_attempt_at"`
	DeadLetter    *uint64         `json:"dead_letter"`
}

type deliveryAttempt struct {
	Number     int     `json:"number"`
	At         string  `json:"at"`
	DurationMs int64   `json:"duration_ms"`
	StatusCode *int    `json:"status_code"`
	Error      string  `json:"error"`
	Answer     *string `json:"answer,omitempty"`
}

// DeliveryDetails is a delivery with all that is kept of it.
type DeliveryDetails struct {
	Delivery
	Log       []deliveryAttempt `json:"log"`
	Body      string            `json:"body"`
	BodyBytes int               `json:"body_bytes"`
}

func newDelivery(account uint64, d *outbox.Delivery) Delivery {
	out := Delivery{ID: messaging.WebhookID(account, d.Origin), Event: d.Ref, Status: d.Status, CreatedAt: record.Time(d.CreatedMs), Attempts: d.Made}
	out.LastAttempt = newAttempt(&d.Attempts[len(d.Attempts)-1])
	if d.Status == outbox.DeliveryWaiting {
		out.NextAttemptAt = record.TimeOrNull(d.DueMs)
	}
	if d.Dead != 0 {
		out.DeadLetter = &d.Dead
	}
	return out
}

func newAttempt(x *outbox.DeliveryAttempt) deliveryAttempt {
	out := deliveryAttempt{Number: x.Number, At: record.Time(x.AtMs), DurationMs: x.TookMs, Error: x.Error}
	if x.Status != 0 {
		out.StatusCode = &x.Status
	}
	return out
}

// listDeliveries answers GET /webhooks/{id}/deliveries, the newest first.
func (a *API) listDeliveries(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	status := string(c.QueryArgs().Peek("status"))
	switch status {
	case "", outbox.DeliveryDelivered, outbox.DeliveryWaiting, outbox.DeliveryFailed:
	default:
		return nil, handler.BadField("status", "status Input should be delivered, waiting or failed")
	}
	before, err := c.NumberCursor(paging.Deliveries)
	if err != nil {
		return nil, err
	}
	list, out := []Delivery{}, handler.Page{}
	err = c.Read(func(v *resolver.View) error {
		if _, ok := v.Outbox().Endpoint(c.PathID()); !ok {
			return noWebhook()
		}
		found, err := v.Outbox().Deliveries(c.PathID(), status, before, limit+1)
		if err != nil {
			return err
		}
		if len(found) > limit {
			found = found[:limit]
			out.Next = handler.EncodeNumberCursor(paging.Deliveries, found[limit-1].Line)
		}
		for i := range found {
			list = append(list, newDelivery(c.Account, &found[i]))
		}
		return nil
	})
	out.Items = list
	return out, err
}

func noDelivery() error {
	return handler.NotFound("the log of this webhook has no delivery with this id; it keeps the newest 1,000")
}

// deliveryOrigin is the webhook-id in the path.
func deliveryOrigin(c *handler.Call) (uint64, error) {
	text := c.Param("delivery")
	i := strings.LastIndexByte(text, '_')
	origin, err := strconv.ParseUint(text[i+1:], 10, 64)
	if err != nil || origin == 0 || text != messaging.WebhookID(c.Account, origin) {
		return 0, noDelivery()
	}
	return origin, nil
}

// getDelivery answers GET /webhooks/{id}/deliveries/{delivery}.
func (a *API) getDelivery(c *handler.Call) (any, error) {
	origin, err := deliveryOrigin(c)
	if err != nil {
		return nil, err
	}
	var out DeliveryDetails
	err = c.Read(func(v *resolver.View) error {
		d, payload, ok, err := v.Outbox().Delivery(c.PathID(), origin)
		if err == nil && !ok {
			err = noDelivery()
		}
		if err != nil {
			return err
		}
		out = DeliveryDetails{Delivery: newDelivery(c.Account, &d), Body: clip.Text(string(payload), maxBodyShown), BodyBytes: len(payload)}
		for i := range d.Attempts {
			x := newAttempt(&d.Attempts[i])
			x.Answer = &d.Attempts[i].Answer
			out.Log = append(out.Log, x)
		}
		return nil
	})
	return out, err
}

// redeliver answers POST /webhooks/{id}/deliveries/{delivery}/redeliver.
func (a *API) redeliver(c *handler.Call) (any, error) {
	origin, err := deliveryOrigin(c)
	if err != nil {
		return nil, err
	}
	if err := c.Command(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: c.PathID(), Origin: origin}, nil); err != nil {
		return nil, err
	}
	return map[string]string{"status": "queued"}, nil
}
