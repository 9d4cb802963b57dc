package view

import "github.com/musterhq/muster/resolver/internal/profile"

// HistoryID is the id of an ordinal from history. The error wraps
// [account.ErrOtherHistory].
func (v Profiles) HistoryID(ordinal uint32) (profile.ID, error) {
	if err := v.a.Knows(ordinal); err != nil {
		return profile.ID{}, err
	}
	return v.ID(ordinal), nil
}
