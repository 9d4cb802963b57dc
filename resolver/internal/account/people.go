package account

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/reach"
)

// ResolveText finds the profile an id stands for, through merges; not ok is one that
// never was or was erased.
func (a *State) ResolveText(id string) (o uint32, ok bool) {
	p, ok := profile.ParseID(id)
	if !ok {
		return 0, false
	}
	return a.Profiles.Find(p)
}

// OrdinalOf is the ordinal that an id carries, or after a merge the winner's.
func (a *State) OrdinalOf(id string) (uint32, bool) {
	x, ok := profile.ParseID(id)
	if !ok {
		return 0, false
	}
	return a.Profiles.Ordinal(x)
}

// IsErased is Erased of an ordinal that need not be one.
func (a *State) IsErased(o uint32) bool { return o < a.Profiles.Headers.Count && a.Profiles.Erased(o) }

// Knows checks an ordinal from history.
func (a *State) Knows(ordinal uint32) error {
	if ordinal < a.Profiles.Headers.Count {
		return nil
	}
	return fmt.Errorf("%w (account %016x has %d profiles, and history one with the number %d)", ErrOtherHistory, a.Number, a.Profiles.Headers.Count, ordinal)
}

// ErrOtherHistory means that history has rows of a profile that the state does not
// have.
var ErrOtherHistory = errors.New("history has rows that are not of this state: the state was lost, or is older than history. Restore state, log and history of one backup")

// HasErased reports whether one of the account's profiles was erased.
func (a *State) HasErased() bool {
	for o := range a.Profiles.Headers.Count {
		if a.Profiles.Erased(o) {
			return true
		}
	}
	return false
}

// RefuseErased refuses an identifier of an erased person, in a record whose text is to leave
// the log.
func (a *State) RefuseErased(k identifier.Kind) *refuse.Refusal {
	a.Erasure.NoteRefused()
	return erasure.Refuse(k)
}

// WhyUnreachable says why a profile may not be sent to on a channel, "" if it may.
func (a *State) WhyUnreachable(d *profile.Document, channel string) string {
	return reach.Why(d, channel, a.Settings.RequireOptIn)
}

// NameOf is how something is named at present, "" for nothing.
func (a *State) NameOf(kind, id string) string {
	switch kind {
	case "segment":
		if s := a.Segments[id]; s != nil {
			return s.Name
		}
	case "flow":
		if _, def := a.Flows.Get(id); def != nil {
			return def.Name
		}
	case "template":
		t, _ := a.Campaigns.Template(id)
		return t.Name
	case "campaign":
		c, _ := a.Campaigns.Campaign(id)
		return c.Name
	case "list":
		if l := a.Contacts.List(id); l != nil {
			return l.Name
		}
	case "user":
		u, _ := a.Access.User(id)
		return u.Name
	case "api_key":
		k, _ := a.Access.APIKey(id)
		return k.Name
	case "source":
		s, _ := a.Sources.Get(id)
		return s.Name
	case "form":
		f, _ := a.Forms.Get(id)
		return f.Name
	case "company":
		return a.Company.Name
	}
	return ""
}
