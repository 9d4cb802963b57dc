package outbox

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of webhook endpoints. They are in the log: never change the meaning of one.
const (
	CommandWebhookCreate = "webhook.create"
	CommandWebhookUpdate = "webhook.update"
	CommandWebhookDelete = "webhook.delete"
	CommandWebhookRotate = "webhook.rotate"
	CommandWebhookTest   = "webhook.test"
	// CommandWebhookReplay queues dead letters again.
	CommandWebhookReplay = "webhook.replay"
)

// Commands are those of webhook endpoints that concern the outbox alone. The machine
// applies [CommandWebhookDelete], which concerns more, see [State.DeleteWebhook].
var Commands = map[string]feature.Command[*State]{
	CommandWebhookCreate: feature.Do((*State).createWebhook),
	CommandWebhookUpdate: feature.Do((*State).updateWebhook),
	CommandWebhookRotate: feature.Do((*State).rotateWebhook),
	CommandWebhookTest:   feature.Do((*State).testWebhook),
	CommandWebhookReplay: feature.Do((*State).replayWebhook),
}

const (
	maxDescription    = 2000 // bytes
	maxEndpoints      = 20   // of an account: each event is queued for each of them
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

func noEndpoint() *refuse.Refusal { return refuse.NotFound("id", "there is no webhook with this id") }

func notActive() *refuse.Refusal {
	return &refuse.Refusal{Code: "conflict", Field: "id", Message: "the webhook is not active; set its status to active first"}
}

func (s *State) createWebhook(tx *feature.Tx, c WebhookSave) *refuse.Refusal {
	switch {
	case len(s.endpoints) >= maxEndpoints:
		return refuse.AtLimit("", "this account has %d webhooks, the most it can have; delete one first", maxEndpoints)
	case c.URL == nil:
		return refuse.Invalid("url", "url is missing")
	case c.Events == nil:
		return refuse.Invalid("events", "events is missing; list names such as email.opened, groups such as email.*, or *")
	case c.Secret == "" || len(c.Secret) > maxSecretBytes:
		return refuse.Invalid("secret", "secret is missing or too long")
	}
	e := &Endpoint{ID: feature.NewID(endpointIDPrefix, tx.Record), Status: EndpointActive, Secrets: []EndpointSecret{{Text: c.Secret}}, CreatedMs: tx.AtMs}
	return s.saveEndpoint(tx, e, &c)
}

func (s *State) updateWebhook(tx *feature.Tx, c WebhookSave) *refuse.Refusal {
	old := s.endpoints[c.ID]
	if old == nil {
		return noEndpoint()
	}
	e := *old
	e.dirty = false
	return s.saveEndpoint(tx, &e, &c)
}

// saveEndpoint sets in e what c sets and makes it part of the state.
func (s *State) saveEndpoint(tx *feature.Tx, e *Endpoint, c *WebhookSave) *refuse.Refusal {
	if c.URL != nil {
		if *c.URL == "" || len(*c.URL) > maxEndpointURL {
			return refuse.Invalid("url", "url must have 1 to %d bytes", maxEndpointURL)
		}
		e.URL = *c.URL
	}
	if c.Events != nil {
		if len(*c.Events) == 0 || len(*c.Events) > maxSubscriptions {
			return refuse.Invalid("events", "events must have 1 to %d entries", maxSubscriptions)
		}
		for _, entry := range *c.Events {
			if err := webhookevent.CheckSubscription(entry); err != nil {
				return refuse.Invalid("events", "%s", err)
			}
		}
		e.Events = slices.Clone(*c.Events)
	}
	if c.Description != nil {
		if len(*c.Description) > maxDescription {
			return refuse.Invalid("description", "description must have at most %d bytes", maxDescription)
		}
		e.Description = *c.Description
	}
	if c.Status != nil {
		if *c.Status != EndpointActive && *c.Status != EndpointDisabled {
			return refuse.Invalid("status", "status Input should be active or disabled")
		}
		if *c.Status == EndpointActive && e.Status != EndpointActive {
			e.Failing, e.LastError = 0, ""
		}
		e.Status = *c.Status
	}
	if c.Ordered != nil {
		e.Unordered = !*c.Ordered
	}
	e.UpdatedMs = tx.AtMs
	s.endpoints[e.ID] = e
	s.setLane(e)
	s.shared.Due = true // what waited may be due
	s.refreshActive(tx)
	s.putEndpoint(e)
	tx.Reply = map[string]string{"id": e.ID}
	return nil
}

// DeleteWebhook removes an endpoint. The caller sees to it that [State.DropEndpoint] removes what
// waits for it, piece by piece.
func (s *State) DeleteWebhook(tx *feature.Tx, c WebhookRef) *refuse.Refusal {
	if s.endpoints[c.ID] == nil {
		return noEndpoint()
	}
	delete(s.endpoints, c.ID)
	s.shared.Store.PutEntity(state.EntityKey(s.account, state.EntityEndpoint, c.ID), nil)
	s.closeLane(c.ID)
	s.refreshActive(tx)
	return nil
}

// DropEndpoint removes a piece of what a deleted endpoint leaves, and reports
// whether that was all.
func (s *State) DropEndpoint(id string) (done bool, err error) {
	left := droppedPerRecord
	if l := s.lanes[id]; l != nil {
		for ; len(l.items) > 0 && left > 0; left-- {
			s.unqueue(l.items[0], false)
		}
		if len(l.items) > 0 {
			return false, nil
		}
		delete(s.lanes, id)
	}
	list := s.dead[id]
	for ; len(list) > 0 && left > 0; left-- {
		x, err := s.deadLetter(id, list[0])
		if err != nil {
			return false, err
		}
		s.dropDead(id, &x)
		list = list[1:]
	}
	s.dead[id] = list
	if len(list) > 0 {
		return false, nil
	}
	delete(s.dead, id)
	return s.dropDeliveries(id, left), nil
}

// rotateWebhook gives an endpoint a new secret. The old one signs beside it for
// a day, so that receivers can change theirs at any time of it.
func (s *State) rotateWebhook(tx *feature.Tx, c WebhookRef) *refuse.Refusal {
	old := s.endpoints[c.ID]
	if old == nil {
		return noEndpoint()
	}
	if c.Secret == "" || len(c.Secret) > maxSecretBytes {
		return refuse.Invalid("secret", "secret is missing or too long")
	}
	e := *old
	e.dirty = false
	e.Secrets = []EndpointSecret{{Text: c.Secret}}
	for _, x := range old.Secrets {
		if x.UntilMs == 0 {
			x.UntilMs = tx.AtMs + secretOverlapMs
		}
		if x.UntilMs > tx.AtMs && len(e.Secrets) < maxSecretsHeld {
			e.Secrets = append(e.Secrets, x)
		}
	}
	e.UpdatedMs = tx.AtMs
	s.endpoints[e.ID] = &e
	s.refreshActive(tx)
	s.putEndpoint(&e)
	tx.Reply = map[string]string{"id": e.ID}
	return nil
}

// testWebhook queues an event for one endpoint, whatever it subscribed to.
func (s *State) testWebhook(tx *feature.Tx, c WebhookRef) *refuse.Refusal {
	e := s.endpoints[c.ID]
	switch {
	case e == nil:
		return noEndpoint()
	case e.Status != EndpointActive:
		return notActive()
	case s.queued(e.ID) >= maxLane:
		return refuse.AtLimit("", "too many deliveries wait for this endpoint; try again later")
	}
	payload := webhookPayload(tx, webhookevent.EndpointTest, map[string]any{"webhook_id": e.ID, "message": "This is a test."})
	seq, refusal := s.Queue(tx, Item{Kind: KindWebhook, Ordinal: NoProfile, Endpoint: e.ID, Ref: webhookevent.EndpointTest}, payload)
	if refusal != nil {
		return refusal
	}
	tx.Reply = map[string]uint64{"seq": seq}
	return nil
}

// refreshActive works out which endpoints get events, in a fixed order, and
// whether a day's totals are kept for them.
func (s *State) refreshActive(tx *feature.Tx) {
	s.findActive()
	s.keepDaily(tx)
}

func (s *State) findActive() {
	s.active = s.active[:0]
	for _, e := range s.endpoints {
		if e.Status == EndpointActive {
			s.active = append(s.active, e)
		}
	}
	slices.SortFunc(s.active, byEndpointAge)
}

func byEndpointAge(x, y *Endpoint) int {
	return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
}

func (s *State) putEndpoint(e *Endpoint) {
	s.shared.Store.PutEntity(state.EntityKey(s.account, state.EntityEndpoint, e.ID), must.JSON(e))
}

// touchEndpoint notes that figures of an endpoint have changed since the last
// checkpoint.
func (s *State) touchEndpoint(e *Endpoint) {
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, e)
	}
}

// Endpoints lists the webhook endpoints, the oldest first.
func (s *State) Endpoints() []Endpoint {
	list := slices.SortedFunc(maps.Values(s.endpoints), byEndpointAge)
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
func (s *State) Endpoint(id string) (Endpoint, bool) {
	if e := s.endpoints[id]; e != nil {
		return e.clone(), true
	}
	return Endpoint{}, false
}

// EndpointQueue is how many deliveries wait for an endpoint, and how many dead
// letters it has.
func (s *State) EndpointQueue(id string) (waiting, dead int) {
	return s.queued(id), len(s.dead[id])
}
