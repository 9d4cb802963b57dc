package account

import (
	"iter"
	"slices"

	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/signup"
	"github.com/musterhq/muster/resolver/sources"
)

// registrations is the table of features, each with its commands. The order is part of the rules
// (R1): merges, erasures and due times go through the features in this order, and the features'
// part of the state's hash ends with those that [State.hashOrder] does not name. A new feature
// comes after inapp; the others keep their places. Some steps need more than a feature sees, and
// the machine takes them itself before it goes through the table: a merge moves lists and devices
// of contacts (resolution_host.go), an erasure takes profiles out of sets and flows (erase.go).
var registrations = []registration{
	featureOf(func(a *State) *access.State { return a.Access }, access.Commands),
	featureOf(func(a *State) *contacts.State { return a.Contacts }, contacts.Commands),
	featureOf(func(a *State) *domains.State { return a.Domains }, domains.Commands),
	featureOf(func(a *State) *credentials.State { return a.Credentials }, credentials.Commands),
	featureOf(func(a *State) *sources.State { return a.Sources }, sources.Commands),
	featureOf(func(a *State) *conversations.State { return a.Conversations }, conversations.Commands),
	featureOf(func(a *State) *outbox.State { return a.Outbox }, outbox.Commands),
	featureOf(func(a *State) *campaigns.State { return a.Campaigns }, campaigns.Commands),
	featureOf(func(a *State) *eventtypes.State { return a.Types }, eventtypes.Commands),
	featureOf(func(a *State) *automation.State { return a.Flows }, automation.Commands),
	featureOf(func(a *State) *erasure.State { return a.Erasure }, erasure.Commands),
	featureOf(func(a *State) *audit.State { return a.Audit }, nil),
	featureOf(func(a *State) *consentlog.State { return a.ConsentLog }, nil),
	featureOf(func(a *State) *forms.State { return a.Forms }, forms.Commands),
	featureOf(func(a *State) *pacing.State { return a.Pacing }, nil),
	featureOf(func(a *State) *orders.State { return a.Orders }, nil),
	featureOf(func(a *State) *inapp.State { return a.InApp }, inapp.Commands),

	// They keep nothing of their own: their commands change several features.
	commandsOf(func(a *State) *sending.State { return a.Sending }, sending.Commands),
	commandsOf(func(a *State) *signup.State { return a.Signup }, signup.Commands),
}

// hashOrder lists the features, and the parts between them, in the order in which the state's hash
// takes them, before identifiers, segments and profiles. It names the features that had their places, between other parts, before there was a table
// of features. All others follow in the order of the table. Never change it (R1): a new feature
// needs no entry here.
func (a *State) hashOrder() []hashStep {
	order := []hashStep{
		a.Access, hashFunc(a.hashSegments), a.Types, hashFunc(a.hashImports), a.Contacts, hashFunc(a.Campaigns.HashTemplates), a.Domains, a.Campaigns,
		a.Credentials, a.Sources, a.Conversations, hashFunc(a.hashSets), a.Outbox, a.Flows, a.Erasure, a.Audit,
	}
	for _, f := range a.list {
		if !slices.Contains(order, hashStep(f)) {
			order = append(order, f)
		}
	}
	return order
}

// hashStep is a part of the account in the state's hash. Hash is that of [feature.State].
type hashStep interface{ Hash(put func([]byte)) error }

// hashFunc is a hashStep that is no feature, or a piece of one.
type hashFunc func(put func([]byte))

func (f hashFunc) Hash(put func([]byte)) error {
	f(put)
	return nil
}

// registration says what an account has of one feature.
type registration struct {
	state    func(*State) feature.State // nil for commands without a state of their own
	commands map[string]Command
}

// Command changes an account by a command's arguments.
type Command = feature.Command[*State]

// featureOf registers a feature: of returns its state in an account.
func featureOf[S feature.State](of func(*State) S, commands map[string]feature.Command[S]) registration {
	r := commandsOf(of, commands)
	r.state = func(a *State) feature.State { return of(a) }
	return r
}

// commandsOf registers commands: of returns what they change.
func commandsOf[S any](of func(*State) S, commands map[string]feature.Command[S]) registration {
	r := registration{commands: make(map[string]Command, len(commands))}
	for name, do := range commands {
		r.commands[name] = func(a *State, tx *feature.Tx, args []byte) (*refuse.Refusal, error) { return do(of(a), tx, args) }
	}
	return r
}

// Commands returns the commands of all features by name.
func Commands() iter.Seq2[string, Command] {
	return func(yield func(string, Command) bool) {
		for _, r := range registrations {
			for name, do := range r.commands {
				if !yield(name, do) {
					return
				}
			}
		}
	}
}

// Register notes what the features take part in, once all are made.
func (a *State) Register() {
	list := make([]feature.State, 0, len(registrations))
	for _, r := range registrations {
		if r.state != nil {
			list = append(list, r.state(a))
		}
	}
	a.registered = registered{list: list, timers: of[feature.Timer](list), readers: of[feature.Reader](list)}
}
