package account

import "github.com/musterhq/muster/resolver/internal/profile"

// Totals are sums over accounts that are asked for after every record. They are kept, not
// counted again: a record costs the same however many accounts there are.
type Totals struct {
	Profiles, Identities int64
	Waiting              int64 // events that wait for their people to be enrolled
	Erased               int64 // erasures that are remembered
	Unsaved              int64 // bytes, about, that changed since the last freeze
}

func (t *Totals) Add(x Totals, sign int64) {
	t.Profiles += sign * x.Profiles
	t.Identities += sign * x.Identities
	t.Waiting += sign * x.Waiting
	t.Erased += sign * x.Erased
	t.Unsaved += sign * x.Unsaved
}

// Totals counts an account.
func (a *State) Totals() Totals {
	return Totals{
		Profiles:   int64(a.Profiles.Headers.Count),
		Identities: int64(a.Profiles.Identifiers.Size()),
		Waiting:    int64(a.Flows.Deferred()),
		Erased:     int64(a.Erasure.Marks()),
		// Of a page of headers little has changed, and its copy is short-lived.
		Unsaved: int64(len(a.Profiles.Identifiers.Changed))*20 + int64(a.Profiles.Headers.ChangedPages())*profile.PageRows*profile.HeaderSize/8,
	}
}
