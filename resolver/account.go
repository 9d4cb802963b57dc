package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/view"
)

// Company owns accounts and users.
type Company = account.Company

// Segment is a saved definition.
type Segment = account.Segment

// Settings change what Apply does, so they are part of the state and changed by records only.
type Settings = account.Settings

// PreferencePage is what the preference page of an account says beside its channels and
// topics.
type PreferencePage = account.PreferencePage

// DefaultSettings are written into the record that makes an account, so accounts keep
// those they were made with.
func DefaultSettings() Settings { return account.DefaultSettings() }

// ErrOtherHistory means that history has rows of a profile that the state does not
// have.
var ErrOtherHistory = account.ErrOtherHistory

// View is the state of one account at one offset.
type View = view.View
