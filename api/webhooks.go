package api

import (
	"strings"

	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
)

// registerWebhooks adds the routes of webhook endpoints. Where an account's
// events go is a setting of it, so the permissions are those of settings.
func (a *API) registerWebhooks(r *router.Router) {
	for _, x := range []struct {
		method, path string
		access       access
		handle       func(*call) (any, error)
	}{
		{"GET", "/webhooks", "settings:read", a.listWebhooks},
		{"POST", "/webhooks", "settings:write", a.createWebhook},
		{"GET", "/webhooks/events", "settings:read", a.listWebhookEvents},
		{"GET", "/webhooks/{id}", "settings:read", a.getWebhook},
		{"PATCH", "/webhooks/{id}", "settings:write", a.updateWebhook},
		{"DELETE", "/webhooks/{id}", "settings:write", a.deleteWebhook},
		{"POST", "/webhooks/{id}/rotate", "settings:write", a.rotateWebhook},
		{"POST", "/webhooks/{id}/test", "settings:write", a.testWebhook},
		{"GET", "/webhooks/{id}/dead-letters", "settings:read", a.listDeadLetters},
		{"POST", "/webhooks/{id}/dead-letters/replay", "settings:write", a.replayDeadLetters},
		{"POST", "/webhooks/{id}/dead-letters/{seq}/replay", "settings:write", a.replayDeadLetters},
	} {
		r.Handle(x.method, Prefix+x.path, a.serve(x.method+" "+x.path, x.access, x.handle))
	}
}

// hook is a webhook endpoint as it is answered.
type hook struct {
	ID          string   `json:"_id"`
	URL         string   `json:"url"`
	Events      []string `json:"events"`
	Description string   `json:"description"`
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

func newHook(v *resolver.View, e *resolver.Endpoint) hook {
	h := hook{
		ID: e.ID, URL: e.URL, Events: e.Events, Description: e.Description, Status: e.Status,
		CreatedAt: record.Time(e.CreatedMs), UpdatedAt: record.Time(e.UpdatedMs),
		Delivered: e.Delivered, Failures: e.Failures, Failing: e.Failing, Dropped: e.Dropped, LastError: e.LastError,
		LastFailedAt: record.TimeOrNull(e.LastFailedMs), LastDeliveredAt: record.TimeOrNull(e.LastDeliveredMs),
	}
	h.Waiting, h.DeadLetters = v.EndpointQueue(e.ID)
	return h
}

func noWebhook() error { return missing("there is no webhook with this id") }

// webhook reads an endpoint.
func (a *API) webhook(c *call, id string) (h hook, err error) {
	err = a.read(c, func(v *resolver.View) error {
		e, ok := v.Endpoint(id)
		if !ok {
			return noWebhook()
		}
		h = newHook(v, &e)
		return nil
	})
	return h, err
}

// listWebhooks answers GET /webhooks, the oldest first. There are few.
func (a *API) listWebhooks(c *call) (any, error) {
	list := []hook{}
	err := a.read(c, func(v *resolver.View) error {
		for _, e := range v.Endpoints() {
			list = append(list, newHook(v, &e))
		}
		return nil
	})
	return list, err
}

func (a *API) getWebhook(c *call) (any, error) { return a.webhook(c, c.id()) }

// listWebhookEvents answers GET /webhooks/events: what endpoints can hear of.
func (a *API) listWebhookEvents(*call) (any, error) {
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
}

// webhookSave reads and judges a request.
func (a *API) webhookSave(c *call) (s resolver.WebhookSave, err error) {
	var in webhookFields
	if err := a.decode(c, &in); err != nil {
		return s, err
	}
	if in.URL != nil {
		if err := (webhook.Guard{AllowPrivate: a.opts.AllowPrivate}).CheckURL(*in.URL); err != nil {
			return s, badField("url", "%s", strings.TrimPrefix(err.Error(), "webhook: "))
		}
	}
	return resolver.WebhookSave{URL: in.URL, Events: in.Events, Description: in.Description, Status: in.Status}, nil
}

// createWebhook answers POST /webhooks with the endpoint and its secret, which is
// not shown again.
func (a *API) createWebhook(c *call) (any, error) {
	s, err := a.webhookSave(c)
	if err != nil {
		return nil, err
	}
	return a.withNewSecret(c, func(secret string) (string, error) {
		s.Secret = secret
		return a.commandID(c, resolver.CommandWebhookCreate, s)
	})
}

// withNewSecret makes a secret, has it saved, and answers the endpoint with it.
func (a *API) withNewSecret(c *call, save func(secret string) (id string, err error)) (any, error) {
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
func (a *API) updateWebhook(c *call) (any, error) {
	s, err := a.webhookSave(c)
	if err != nil {
		return nil, err
	}
	s.ID = c.id()
	if _, err := a.commandID(c, resolver.CommandWebhookUpdate, s); err != nil {
		return nil, err
	}
	return a.webhook(c, s.ID)
}

func (a *API) deleteWebhook(c *call) (any, error) {
	return nil, a.command(c, resolver.CommandWebhookDelete, resolver.WebhookRef{ID: c.id()}, nil)
}

// rotateWebhook answers POST /webhooks/{id}/rotate with a new secret. The old one
// signs beside it for a day.
func (a *API) rotateWebhook(c *call) (any, error) {
	return a.withNewSecret(c, func(secret string) (string, error) {
		return a.commandID(c, resolver.CommandWebhookRotate, resolver.WebhookRef{ID: c.id(), Secret: secret})
	})
}

// testWebhook answers POST /webhooks/{id}/test: a test event is queued, behind
// what waits already.
func (a *API) testWebhook(c *call) (any, error) {
	var queued struct{ Seq uint64 }
	if err := a.command(c, resolver.CommandWebhookTest, resolver.WebhookRef{ID: c.id()}, &queued); err != nil {
		return nil, err
	}
	return map[string]any{"status": "queued", "seq": queued.Seq}, nil
}
