package resolver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of webhook endpoints.
const (
	CommandWebhookCreate = "webhook.create"
	CommandWebhookUpdate = "webhook.update"
	CommandWebhookDelete = "webhook.delete"
	CommandWebhookRotate = "webhook.rotate"
	CommandWebhookTest   = "webhook.test"
)

const (
	maxEndpoints      = 20 // of an account: each event is queued for each of them
	maxSubscriptions  = 50
	maxEndpointURL    = 2048
	maxSecretBytes    = 128
	maxSecretsHeld    = 4
	secretOverlapMs   = dayMs
	droppedPerRecord  = 2000 // items of a deleted endpoint that one record removes
	endpointIDPrefix  = "whk_"
	endpointDailyName = "" // the entity beside the endpoints: what the day began with
)

// The statuses of an endpoint.
const (
	EndpointActive   = "active"
	EndpointDisabled = "disabled" // by a person
	EndpointGone     = "gone"     // by itself: it answered 410
)

// Endpoint is where webhooks go.
type Endpoint struct {
	ID          string           `json:"id"`
	URL         string           `json:"url"`
	Events      []string         `json:"events"` // names, groups such as email.*, or *
	Description string           `json:"description"`
	Status      string           `json:"status"`
	Secrets     []EndpointSecret `json:"secrets"` // the newest first
	// Unordered endpoints get each delivery when it is due, whatever became of those
	// before it. Endpoints of before there was the choice are ordered.
	Unordered bool  `json:"unordered,omitempty"`
	CreatedMs int64 `json:"created_ms"`
	UpdatedMs int64 `json:"updated_ms"`

	Delivered       uint64 `json:"delivered"`
	Failures        uint64 `json:"failures"` // attempts, over all time
	Failing         uint64 `json:"failing"`  // attempts since the last success
	Dropped         uint64 `json:"dropped"`  // events for which there was no room
	LastError       string `json:"last_error,omitempty"`
	LastFailedMs    int64  `json:"last_failed_ms,omitempty"`
	LastDeliveredMs int64  `json:"last_delivered_ms,omitempty"`

	dirty bool
}

// EndpointSecret signs deliveries until a time; 0 is for good.
type EndpointSecret struct {
	Text    string `json:"text"`
	UntilMs int64  `json:"until_ms,omitempty"`
}

// String hides the secret.
func (EndpointSecret) String() string { return "(secret)" }

// GoString hides the secret from %#v.
func (s EndpointSecret) GoString() string { return s.String() }

// Signing are the secrets that sign at a time, the newest first.
func (e *Endpoint) Signing(nowMs int64) []string {
	var out []string
	for _, s := range e.Secrets {
		if s.UntilMs == 0 || s.UntilMs > nowMs {
			out = append(out, s.Text)
		}
	}
	return out
}

// WebhookSave makes an endpoint, or changes what is set of the one with the ID.
// Whether the URL may be called is judged before.
type WebhookSave struct {
	ID          string    `json:"id,omitempty"`
	URL         *string   `json:"url,omitempty"`
	Events      *[]string `json:"events,omitempty"`
	Description *string   `json:"description,omitempty"`
	Status      *string   `json:"status,omitempty"` // active or disabled
	// Ordered has deliveries go out one at a time, in order. One that is made without
	// it is ordered, as in logs of before there was the choice.
	Ordered *bool  `json:"ordered,omitempty"`
	Secret  string `json:"secret,omitempty"` // at creation
}

// WebhookRef names an endpoint; Secret is the new one of a rotation.
type WebhookRef struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
}

func noEndpoint() *Refusal { return notFound("id", "there is no webhook with this id") }

func notActive() *Refusal {
	return &Refusal{Code: "conflict", Field: "id", Message: "the webhook is not active; set its status to active first"}
}

func (m *Machine) createWebhook(cmd *command, c WebhookSave) *Refusal {
	a := cmd.account
	switch {
	case len(a.endpoints) >= maxEndpoints:
		return atLimit("", "this account has %d webhooks, the most it can have; delete one first", maxEndpoints)
	case c.URL == nil:
		return invalid("url", "url is missing")
	case c.Events == nil:
		return invalid("events", "events is missing; list names such as email.opened, groups such as email.*, or *")
	case c.Secret == "" || len(c.Secret) > maxSecretBytes:
		return invalid("secret", "secret is missing or too long")
	}
	e := &Endpoint{ID: feature.NewID(endpointIDPrefix, cmd.env.ID), Status: EndpointActive, Secrets: []EndpointSecret{{Text: c.Secret}}, CreatedMs: m.logTime}
	return m.saveEndpoint(cmd, e, &c)
}

func (m *Machine) updateWebhook(cmd *command, c WebhookSave) *Refusal {
	old := cmd.account.endpoints[c.ID]
	if old == nil {
		return noEndpoint()
	}
	e := *old
	e.dirty = false
	return m.saveEndpoint(cmd, &e, &c)
}

// saveEndpoint sets in e what c sets and makes it part of the state.
func (m *Machine) saveEndpoint(cmd *command, e *Endpoint, c *WebhookSave) *Refusal {
	a := cmd.account
	if c.URL != nil {
		if *c.URL == "" || len(*c.URL) > maxEndpointURL {
			return invalid("url", "url must have 1 to %d bytes", maxEndpointURL)
		}
		e.URL = *c.URL
	}
	if c.Events != nil {
		if len(*c.Events) == 0 || len(*c.Events) > maxSubscriptions {
			return invalid("events", "events must have 1 to %d entries", maxSubscriptions)
		}
		for _, entry := range *c.Events {
			if err := webhookevent.CheckSubscription(entry); err != nil {
				return invalid("events", "%s", err)
			}
		}
		e.Events = slices.Clone(*c.Events)
	}
	if c.Description != nil {
		if len(*c.Description) > maxDescription {
			return invalid("description", "description must have at most %d bytes", maxDescription)
		}
		e.Description = *c.Description
	}
	if c.Status != nil {
		if *c.Status != EndpointActive && *c.Status != EndpointDisabled {
			return invalid("status", "status Input should be active or disabled")
		}
		if *c.Status == EndpointActive && e.Status != EndpointActive {
			e.Failing, e.LastError = 0, ""
		}
		e.Status = *c.Status
	}
	if c.Ordered != nil {
		e.Unordered = !*c.Ordered
	}
	e.UpdatedMs = m.logTime
	a.endpoints[e.ID] = e
	a.outbox.setLane(e)
	m.queued = true // what waited may be due
	m.refreshHooks(a)
	m.putEndpoint(a, e)
	cmd.reply(map[string]string{"id": e.ID})
	return nil
}

// deleteWebhook removes an endpoint. What waits for it is removed piece by piece.
func (m *Machine) deleteWebhook(cmd *command, c WebhookRef) *Refusal {
	a := cmd.account
	if a.endpoints[c.ID] == nil {
		return noEndpoint()
	}
	if len(m.tasks) >= maxPendingTasks {
		return atLimit("", "webhooks were deleted too often in a row; try again in a moment")
	}
	delete(a.endpoints, c.ID)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityEndpoint, c.ID), nil)
	a.outbox.closeLane(c.ID)
	m.refreshHooks(a)
	m.enqueue(task{Account: a.number, Endpoint: c.ID})
	return nil
}

// dropEndpoint removes a piece of what a deleted endpoint leaves, and tells
// whether that was all.
func (m *Machine) dropEndpoint(a *account, id string) (done bool, err error) {
	left := droppedPerRecord
	if l := a.outbox.lanes[id]; l != nil {
		for ; len(l.items) > 0 && left > 0; left-- {
			m.unqueue(a, l.items[0], false)
		}
		if len(l.items) > 0 {
			return false, nil
		}
		delete(a.outbox.lanes, id)
	}
	list := a.outbox.dead[id]
	for ; len(list) > 0 && left > 0; left-- {
		x, err := m.deadLetter(a, id, list[0])
		if err != nil {
			return false, err
		}
		m.dropDead(a, id, &x)
		list = list[1:]
	}
	a.outbox.dead[id] = list
	if len(list) > 0 {
		return false, nil
	}
	delete(a.outbox.dead, id)
	return m.dropDeliveries(a, id, left), nil
}

// rotateWebhook gives an endpoint a new secret. The old one signs beside it for
// a day, so that receivers can change theirs at any time of it.
func (m *Machine) rotateWebhook(cmd *command, c WebhookRef) *Refusal {
	a := cmd.account
	old := a.endpoints[c.ID]
	if old == nil {
		return noEndpoint()
	}
	if c.Secret == "" || len(c.Secret) > maxSecretBytes {
		return invalid("secret", "secret is missing or too long")
	}
	e := *old
	e.dirty = false
	e.Secrets = []EndpointSecret{{Text: c.Secret}}
	for _, s := range old.Secrets {
		if s.UntilMs == 0 {
			s.UntilMs = m.logTime + secretOverlapMs
		}
		if s.UntilMs > m.logTime && len(e.Secrets) < maxSecretsHeld {
			e.Secrets = append(e.Secrets, s)
		}
	}
	e.UpdatedMs = m.logTime
	a.endpoints[e.ID] = &e
	m.refreshHooks(a)
	m.putEndpoint(a, &e)
	cmd.reply(map[string]string{"id": e.ID})
	return nil
}

// testWebhook queues an event for one endpoint, whatever it subscribed to.
func (m *Machine) testWebhook(cmd *command, c WebhookRef) *Refusal {
	a := cmd.account
	e := a.endpoints[c.ID]
	switch {
	case e == nil:
		return noEndpoint()
	case e.Status != EndpointActive:
		return notActive()
	case a.outbox.queued(e.ID) >= maxLane:
		return atLimit("", "too many deliveries wait for this endpoint; try again later")
	}
	payload := m.webhookPayload(webhookevent.EndpointTest, properties{"webhook_id": e.ID, "message": "This is a test."})
	seq, refusal := m.queue(a, OutboxItem{Kind: OutboxWebhook, Ordinal: NoProfile, Endpoint: e.ID, Ref: webhookevent.EndpointTest}, payload)
	if refusal != nil {
		return refusal
	}
	cmd.reply(map[string]uint64{"seq": seq})
	return nil
}

// refreshHooks works out which endpoints hear of events, in a fixed order, and
// whether a day's totals are kept for them.
func (m *Machine) refreshHooks(a *account) {
	a.findHooks()
	m.keepDaily(a)
}

func (a *account) findHooks() {
	a.hooks = a.hooks[:0]
	for _, e := range a.endpoints {
		if e.Status == EndpointActive {
			a.hooks = append(a.hooks, e)
		}
	}
	slices.SortFunc(a.hooks, byEndpointAge)
}

func byEndpointAge(x, y *Endpoint) int {
	return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
}

func (m *Machine) putEndpoint(a *account, e *Endpoint) {
	m.store.PutEntity(state.EntityKey(a.number, state.EntityEndpoint, e.ID), must.JSON(e))
}

// touchEndpoint notes that figures of an endpoint have changed since the last
// checkpoint.
func (m *Machine) touchEndpoint(a *account, e *Endpoint) {
	if !e.dirty {
		e.dirty = true
		a.dirtyEndpoints = append(a.dirtyEndpoints, e)
	}
}

// storeEndpoints hands the changed endpoints to the store.
func (m *Machine) storeEndpoints(a *account) {
	for _, e := range a.dirtyEndpoints {
		if a.endpoints[e.ID] == e {
			m.putEndpoint(a, e)
		}
		e.dirty = false
	}
	a.dirtyEndpoints = a.dirtyEndpoints[:0]
}

// Endpoints lists the webhook endpoints, the oldest first.
func (v *View) Endpoints() []Endpoint {
	list := slices.SortedFunc(maps.Values(v.a.endpoints), byEndpointAge)
	out := make([]Endpoint, len(list))
	for i, e := range list {
		out[i] = e.clone()
	}
	return out
}

// clone is a copy that outlives the view.
func (e *Endpoint) clone() Endpoint {
	c := *e
	c.Events, c.Secrets = slices.Clone(e.Events), slices.Clone(e.Secrets)
	return c
}

// Endpoint finds a webhook endpoint.
func (v *View) Endpoint(id string) (Endpoint, bool) {
	if e := v.a.endpoints[id]; e != nil {
		return e.clone(), true
	}
	return Endpoint{}, false
}

// EndpointQueue is how many deliveries wait for an endpoint, and how many dead
// letters it has.
func (v *View) EndpointQueue(id string) (waiting, dead int) {
	return v.a.outbox.queued(id), len(v.a.outbox.dead[id])
}
