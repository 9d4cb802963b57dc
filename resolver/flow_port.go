package resolver

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// flowPort is what the flows of an account see of the rest, an automation.Port. What needs
// a record is of the one that is being applied.
type flowPort struct {
	m *Machine
	a *account.State
}

func (p flowPort) ProfileCount() uint32 { return p.a.Profiles.Headers.Count }

func (p flowPort) ProfileID(o uint32) ProfileID { return p.a.Profiles.Headers.Get(o).ID }

func (p flowPort) Root(o uint32) uint32 { return p.a.Profiles.Root(o) }

func (p flowPort) Erased(o uint32) bool { return p.a.Profiles.Erased(o) }

// Named notes identifiers of erased persons that a call names.
func (p flowPort) Named(email, externalID, phone string) (uint32, *Refusal) {
	m, a := p.m, p.a
	given := false
	for k, value := range [...]string{email, externalID, phone} {
		if strings.TrimSpace(value) == "" {
			continue
		}
		given = true
		if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityKind(k), []byte(value), &m.tx.normal); ok {
			if o := a.Profiles.Identifiers.Owner(h); o != profile.NoOrdinal {
				return o, nil
			}
			a.Erasure.NoteNamed(h)
		}
	}
	if !given {
		return 0, invalid("email", "email, external_id or phone Field required: the contact to be enrolled")
	}
	return 0, notFound("", "no contact has these identifiers; create it first")
}

func (p flowPort) Load(o uint32) *profile.Document {
	if err := p.a.Profiles.Load(o, &p.m.tx.profiles.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return &p.m.tx.profiles.Doc
}

func (p flowPort) Save(o uint32, d *profile.Document) { p.a.Profiles.Save(o, d) }

func (p flowPort) Update(o uint32, d *profile.Document, changed engine.Fields) {
	p.m.updateProfile(&p.m.tx, o, d, changed)
}

func (p flowPort) Record(o uint32, typ string, about map[string]any, encoded []byte) {
	p.a.Engine.Touch(o)
	p.m.appendEncoded(&p.m.tx, o, feature.NewEvent(typ, about), encoded)
	p.a.Engine.Evaluate(o)
}

func (p flowPort) Set(name string) *profile.OrdinalSet { return p.a.Sets.Set(name) }

func (p flowPort) DropSet(name string) { p.a.DropSet(p.m.store, name) }

func (p flowPort) HasOpenCart(o uint32) bool { return p.a.Orders.HasOpenCart(o) }

func (p flowPort) Sum(b []byte) identifier.Hash { return p.a.Profiles.Hasher.Sum(b) }

func (p flowPort) KeyUsed(flow, key string) (o uint32, ok bool) {
	v, ok, err := p.m.idempotencyKeys.Get(p.a.Profiles.Hasher.HashFlowKey(flow, key, &p.m.tx.normal))
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return v.Ordinal, ok && v.AtMs > p.a.KeysFromMs(p.m.logTime)
}

func (p flowPort) UseKey(flow, key string, o uint32) {
	p.m.idempotencyKeys.Put(p.a.Profiles.Hasher.HashFlowKey(flow, key, &p.m.tx.normal), dedup.Answer{AtMs: p.m.logTime, Ordinal: o})
}

func (p flowPort) Engine() *engine.Engine { return p.a.Engine }

func (p flowPort) Define(id string, root *segment.Node, offset int64) {
	p.m.defineRoot(p.a, id, root, offset)
}

func (p flowPort) MaxLeaves() int { return maxLeaves }

func (p flowPort) EmitTransitions() { p.m.emitTransitions(&p.m.tx) }

// Reach judges as campaigns do.
func (p flowPort) Reach(d *profile.Document, channel string) flows.Result {
	address := d.Has(IdentityPhone)
	switch channel {
	case flows.StepEmail:
		address = d.Has(IdentityEmail)
	case flows.StepPush:
		address = len(d.Devices) > 0
	case flows.StepInApp:
		address = d.Has(IdentityEmail) || d.Has(IdentityExternalID)
	}
	switch reason := p.a.WhyUnreachable(d, channel); {
	case !address:
		return flows.NoAddress
	case reason == "":
		return flows.Queued
	case d.GravestSuppression(byte(slices.Index(profile.Channels, channel))) != 0:
		return flows.Suppressed
	}
	return flows.NotSubscribed
}

func (p flowPort) MayGo(o uint32, channel string) (r flows.Result, untilMs int64) {
	// The message has no number yet, and so counts for no other.
	untilMs, reason := p.m.mayGo(p.a, o, channel, 0)
	switch {
	case untilMs != 0:
		return flows.Held, untilMs
	case reason == pacing.ReasonQuietHours:
		return flows.QuietHours, 0
	case reason == pacing.ReasonFrequencyCap:
		return flows.FrequencyCap, 0
	}
	return flows.Queued, 0
}

func (p flowPort) Credits() int64 { return p.a.EmailCredits }

func (p flowPort) Rules() int { return p.m.rules }

func (p flowPort) Scrub(key string) {
	p.m.scrub = append(p.m.scrub, checkpoint.Scrubbed{Account: p.a.Number, Keys: []string{key}})
}

func (p flowPort) World() flows.World { return flowWorld{p.a} }

// flowWorld is what a flow may refer to.
type flowWorld struct{ a *account.State }

func (w flowWorld) Segment(id string) bool { return w.a.Segments[id] != nil }

func (w flowWorld) List(id string) bool { return w.a.Contacts.List(id) != nil }

func (w flowWorld) Template(id string) (subject string, ok bool) {
	t, ok := w.a.Campaigns.Template(id)
	return t.Subject, ok
}

// Sender says what keeps an address from being a sender, empty for nothing.
func (w flowWorld) Sender(address string) string {
	r := w.a.Domains.MayBeSender(address)
	if r == nil {
		return ""
	}
	// The fault names the field.
	if why, ok := strings.CutPrefix(r.Message, "sender: "); ok {
		return "cannot be used: " + why
	}
	return strings.TrimPrefix(r.Message, "sender ")
}

func (w flowWorld) CheckCondition(root *segment.Node) error {
	if err := segment.CheckRefs("", root, w.a.Definition); err != nil {
		return err
	}
	return segment.CheckLists(root, func(id string) bool { return w.a.Contacts.List(id) != nil })
}
