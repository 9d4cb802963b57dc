package view

import "github.com/musterhq/muster/resolver/internal/profile"

// MergedProfile is a profile that became part of another.
type MergedProfile struct {
	Ordinal uint32
	ID      profile.ID
	AtMs    int64
}

// Merges lists the profiles that became part of a profile, or of one that did, in
// the order in which they joined it.
func (v Profiles) Merges(ordinal uint32) ([]MergedProfile, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	out := make([]MergedProfile, len(d.Merged))
	for i, m := range d.Merged {
		out[i] = MergedProfile{m.Ordinal, v.ID(m.Ordinal), m.AtMs}
	}
	return out, nil
}
