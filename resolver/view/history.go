package view

import "github.com/musterhq/muster/resolver/internal/profile"

// HistoryID is the id of an ordinal from history. ok is false for one that was erased: its
// rows leave history a while later, and are not to be shown. The error wraps
// [account.ErrOtherHistory].
func (v Profiles) HistoryID(ordinal uint32) (id profile.ID, ok bool, err error) {
	if err := v.a.Knows(ordinal); err != nil {
		return profile.ID{}, false, err
	}
	return v.ID(ordinal), !v.a.Profiles.Erased(v.a.Profiles.Root(ordinal)), nil
}
