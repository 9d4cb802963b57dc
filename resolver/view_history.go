package resolver

import (
	"errors"
	"fmt"
)

// ErrOtherHistory means that history has rows of a profile that the state does not
// have.
var ErrOtherHistory = errors.New("history has rows that are not of this state: the state was lost, or is older than history. Restore state, log and history of one backup")

// HistoryProfileID is the id of an ordinal that history tells of. The error wraps
// [ErrOtherHistory].
func (v *View) HistoryProfileID(ordinal uint32) (ProfileID, error) {
	if err := v.a.knows(ordinal); err != nil {
		return ProfileID{}, err
	}
	return v.ProfileID(ordinal), nil
}

// knows checks an ordinal that history tells of.
func (a *account) knows(ordinal uint32) error {
	if ordinal < a.profiles.Headers.Count {
		return nil
	}
	return fmt.Errorf("%w (account %016x has %d profiles, and history one with the number %d)", ErrOtherHistory, a.number, a.profiles.Headers.Count, ordinal)
}
