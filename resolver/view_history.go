package resolver

// HistoryProfileID is the id of an ordinal that history tells of. The error wraps
// [ErrOtherHistory].
func (v *View) HistoryProfileID(ordinal uint32) (ProfileID, error) {
	if err := v.a.Knows(ordinal); err != nil {
		return ProfileID{}, err
	}
	return v.ProfileID(ordinal), nil
}
