package messages

import (
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/outbox"
)

// Webhooks are the calls about webhooks, and about captured messages.
func (a *API) Webhooks() handler.Group {
	hook := shape.Object(
		shape.Req("_id", shape.WebhookID("")), shape.Req("url", shape.Text("https://example.com/hooks", "")), shape.Req("events", shape.List(shape.Text("email.opened", ""), "")), shape.Req("description", shape.Text("CRM", "")),
		shape.Req("ordered", shape.Boolean(false, "Deliveries go out one at a time, in order: one that fails holds back those behind it until it is delivered or given up.")),
		shape.Req("status", shape.Word("disabled is by a person; gone when the receiver answered 410, until a person makes it active.", "active", "disabled", "gone")), shape.Req("created_at", shape.Instant("")), shape.Req("updated_at", shape.Instant("")),
		shape.Req("delivered", shape.Count(812, "Deliveries, over all time.")), shape.Req("failures", shape.Count(2, "Attempts that failed, over all time.")), shape.Req("failing", shape.Count(0, "Attempts that failed since the last success.")),
		shape.Req("dropped", shape.Count(0, "Events for which there was no room.")), shape.Req("waiting", shape.Count(0, "")), shape.Req("dead_letters", shape.Count(1, "")),
		shape.Req("last_error", shape.Text("HTTP 503", "Empty for none.")), shape.Req("last_failed_at", shape.Instant("").OrNull()), shape.Req("last_delivered_at", shape.Instant("").OrNull()),
	)
	one := shape.Named("Webhook", hook)
	withSecret := hook.Plus(shape.Req("secret", shape.Text("whsec_Zm9vYmFy…", "Signs deliveries (Standard Webhooks). Shown this once.")))
	fields := func(create bool) *shape.Schema {
		url := shape.Text("https://example.com/hooks", "Where events are sent. Private addresses are refused, unless the server is set otherwise.").Bytes(1, 2048)
		events := shape.List(shape.Text("email.opened", ""), "Names of events, groups such as `email.*`, or `*`.").Entries(1, 50)
		ordered := shape.Boolean(false, "Send one delivery at a time, in order: one that fails holds back those behind it, for up to three days.")
		if create {
			ordered = ordered.Default(false)
		}
		first := []shape.Field{shape.Opt("url", url), shape.Opt("events", events)}
		if create {
			first = []shape.Field{shape.Req("url", url), shape.Req("events", events)}
		}
		return shape.Object(append(first, shape.Opt("description", shape.Text("CRM", "").Bytes(0, 2000)), shape.Opt("ordered", ordered), shape.Opt("status", shape.Word("A disabled endpoint keeps what waits for it.", "active", "disabled")))...)
	}
	replayed := shape.Object(shape.Req("replayed", shape.Count(1, "How many are queued again.")), shape.Req("left", shape.Count(0, "How many are left.")))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: webhooks", Title: "Webhooks",
		About: "Endpoints that receive events. Deliveries are signed, tried again over three days each, and kept as dead letters when they are given up. One that fails holds back no other, unless the endpoint is `ordered`. `timestamp` in the body says when the event happened, and the header webhook-id is the same at every attempt."}, Routes: append([]handler.Route{
		{Handle: a.listWebhooks, Operation: operation.Operation{Method: "GET", Path: "/webhooks", Permission: "settings:read", ID: "listWebhooks", Summary: "List endpoints", Data: shape.List(one, "")}},
		{Handle: a.createWebhook, Operation: operation.Operation{Method: "POST", Path: "/webhooks", Permission: "settings:write", ID: "createWebhook", Summary: "Register an endpoint", Body: fields(true), Data: withSecret}},
		{Handle: a.listWebhookEvents, Operation: operation.Operation{Method: "GET", Path: "/webhooks/events", Permission: "settings:read", ID: "listWebhookEvents", Summary: "List event names",
			Data: shape.List(shape.Object(shape.Req("name", shape.Text("email.opened", "")), shape.Req("description", shape.Text("An email was opened.", ""))), "")}},
		{Handle: a.getWebhook, Operation: operation.Operation{Method: "GET", Path: "/webhooks/{id}", Permission: "settings:read", ID: "getWebhook", Summary: "Read an endpoint", Data: one}},
		{Handle: a.updateWebhook, Operation: operation.Operation{Method: "PATCH", Path: "/webhooks/{id}", Permission: "settings:write", ID: "updateWebhook", Summary: "Change an endpoint", About: "Omitted fields keep their values. An endpoint that is made active again receives its pending deliveries.", Body: fields(false), Data: one}},
		{Handle: a.deleteWebhook, Operation: operation.Operation{Method: "DELETE", Path: "/webhooks/{id}", Permission: "settings:write", ID: "deleteWebhook", Summary: "Remove an endpoint"}},
		{Handle: a.rotateWebhook, Operation: operation.Operation{Method: "POST", Path: "/webhooks/{id}/rotate", Permission: "settings:write", ID: "rotateWebhook", Summary: "Rotate the secret", About: "Deliveries are signed with both secrets for a day.", Data: withSecret}},
		{Handle: a.testWebhook, Operation: operation.Operation{Method: "POST", Path: "/webhooks/{id}/test", Permission: "settings:write", ID: "testWebhook", Summary: "Send a test event", About: "An ordered endpoint gets it after its pending deliveries.",
			Data: shape.Object(shape.Req("status", shape.Word("", "queued")), shape.Req("seq", shape.Count(17, "")))}},
		{Handle: a.listDeadLetters, Operation: operation.Operation{Method: "GET", Path: "/webhooks/{id}/dead-letters", Permission: "settings:read", ID: "listDeadLetters", Summary: "List dead letters", About: "In the order in which they were given up.",
			Data: shape.List(shape.Object(shape.Req("seq", shape.Count(17, "")), shape.Req("webhook_id", shape.Text("msg_3f9a7c2e5d1b8046_17", "The header webhook-id of all its attempts.")), shape.Req("event", shape.Text("email.opened", "")), shape.Req("attempts", shape.Count(12, "")),
				shape.Req("reason", shape.Text("HTTP 410", "")), shape.Req("created_at", shape.Instant("")), shape.Req("died_at", shape.Instant(""))), ""), Paged: true}},
		{Handle: a.replayDeadLetters, Operation: operation.Operation{Method: "POST", Path: "/webhooks/{id}/dead-letters/replay", Permission: "settings:write", ID: "replayDeadLetters", Summary: "Replay all dead letters", Data: replayed}},
		{Handle: a.replayDeadLetters, Operation: operation.Operation{Method: "POST", Path: "/webhooks/{id}/dead-letters/{seq}/replay", Permission: "settings:write", ID: "replayDeadLetter", Summary: "Replay a dead letter", Data: replayed}},
	}, a.deliveryRoutes()...)}
}

// hook is a webhook endpoint as it is answered.
type hook struct {
	ID          string   `json:"_id"`
	URL         string   `json:"url"`
	Events      []string `json:"events"`
	Description string   `json:"description"`
	Ordered     bool     `json:"ordered"`
	Status      string   `json:"status"`
	// Secret signs deliveries. It is shown at creation and after a rotation only.
	Secret    string `json:"secret,omitempty"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	// Failures are attempts, over all time; Failing those since the last success.
	Delivered       uint64  `json:"delivered"`
	Failures        uint64  `json:"failures"`
	Failing         uint64  `json:"failing"`
	Dropped         uint64  `json:"dropped"` // events for which there was no room
	Waiting         int     `json:"waiting"`
	DeadLetters     int     `json:"dead_letters"`
	LastError       string  `json:"last_error"`
	LastFailedAt    *string `json:"last_failed_at"`
	LastDeliveredAt *string `json:"last_delivered_at"`
}

func newHook(v *resolver.View, e *outbox.Endpoint) hook {
	h := hook{
		ID: e.ID, URL: e.URL, Events: e.Events, Description: e.Description, Ordered: !e.Unordered, Status: e.Status,
		CreatedAt: record.Time(e.CreatedMs), UpdatedAt: record.Time(e.UpdatedMs),
		Delivered: e.Delivered, Failures: e.Failures, Failing: e.Failing, Dropped: e.Dropped, LastError: e.LastError,
		LastFailedAt: record.TimeOrNull(e.LastFailedMs), LastDeliveredAt: record.TimeOrNull(e.LastDeliveredMs),
	}
	h.Waiting, h.DeadLetters = v.Outbox().EndpointQueue(e.ID)
	return h
}

func noWebhook() error { return handler.NotFound("there is no webhook with this id") }

// webhook reads an endpoint.
func (a *API) webhook(c *handler.Call, id string) (h hook, err error) {
	err = c.Read(func(v *resolver.View) error {
		e, ok := v.Outbox().Endpoint(id)
		if !ok {
			return noWebhook()
		}
		h = newHook(v, &e)
		return nil
	})
	return h, err
}

// listWebhooks answers GET /webhooks, the oldest first. There are few.
func (a *API) listWebhooks(c *handler.Call) (any, error) {
	list := []hook{}
	err := c.Read(func(v *resolver.View) error {
		for _, e := range v.Outbox().Endpoints() {
			list = append(list, newHook(v, &e))
		}
		return nil
	})
	return list, err
}

func (a *API) getWebhook(c *handler.Call) (any, error) { return a.webhook(c, c.PathID()) }

// listWebhookEvents answers GET /webhooks/events: the events that endpoints can
// subscribe to.
func (a *API) listWebhookEvents(*handler.Call) (any, error) {
	type event struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	list := []event{}
	for _, t := range webhookevent.Types() {
		list = append(list, event{t.Name, t.Doc})
	}
	return list, nil
}

// webhookFields are those of a request.
type webhookFields struct {
	URL         *string   `json:"url"`
	Events      *[]string `json:"events"`
	Description *string   `json:"description"`
	Status      *string   `json:"status"`
	Ordered     *bool     `json:"ordered"`
}

// webhookSave reads and judges a request.
func (a *API) webhookSave(c *handler.Call) (s outbox.WebhookSave, err error) {
	var in webhookFields
	if err := c.Decode(&in); err != nil {
		return s, err
	}
	if in.URL != nil {
		if err := (webhook.Guard{AllowPrivate: a.opts.AllowPrivate}).CheckURL(*in.URL); err != nil {
			return s, handler.BadField("url", "%s", strings.TrimPrefix(err.Error(), "webhook: "))
		}
	}
	return outbox.WebhookSave{URL: in.URL, Events: in.Events, Description: in.Description, Status: in.Status, Ordered: in.Ordered}, nil
}

// createWebhook answers POST /webhooks with the endpoint and its secret, which is
// not shown again.
func (a *API) createWebhook(c *handler.Call) (any, error) {
	s, err := a.webhookSave(c)
	if err != nil {
		return nil, err
	}
	if s.Ordered == nil {
		s.Ordered = new(bool)
	}
	return a.withNewSecret(c, func(secret string) (string, error) {
		s.Secret = secret
		return c.CommandID(outbox.CommandWebhookCreate, s)
	})
}

// withNewSecret makes a secret, has it saved, and answers the endpoint with it.
func (a *API) withNewSecret(c *handler.Call, save func(secret string) (id string, err error)) (any, error) {
	secret, err := webhook.NewSecret(a.opts.Rand)
	if err != nil {
		return nil, err
	}
	id, err := save(secret.Text())
	if err != nil {
		return nil, err
	}
	h, err := a.webhook(c, id)
	h.Secret = secret.Text()
	return h, err
}

// updateWebhook answers PATCH /webhooks/{id}. An endpoint that is made active
// again gets what waited for it.
func (a *API) updateWebhook(c *handler.Call) (any, error) {
	s, err := a.webhookSave(c)
	if err != nil {
		return nil, err
	}
	s.ID = c.PathID()
	if _, err := c.CommandID(outbox.CommandWebhookUpdate, s); err != nil {
		return nil, err
	}
	return a.webhook(c, s.ID)
}

func (a *API) deleteWebhook(c *handler.Call) (any, error) {
	return nil, c.Command(outbox.CommandWebhookDelete, outbox.WebhookRef{ID: c.PathID()}, nil)
}

// rotateWebhook answers POST /webhooks/{id}/rotate with a new secret. The old one
// signs beside it for a day.
func (a *API) rotateWebhook(c *handler.Call) (any, error) {
	return a.withNewSecret(c, func(secret string) (string, error) {
		return c.CommandID(outbox.CommandWebhookRotate, outbox.WebhookRef{ID: c.PathID(), Secret: secret})
	})
}

// testWebhook answers POST /webhooks/{id}/test: a test event is queued.
func (a *API) testWebhook(c *handler.Call) (any, error) {
	var queued struct{ Seq uint64 }
	if err := c.Command(outbox.CommandWebhookTest, outbox.WebhookRef{ID: c.PathID()}, &queued); err != nil {
		return nil, err
	}
	return map[string]any{"status": "queued", "seq": queued.Seq}, nil
}
