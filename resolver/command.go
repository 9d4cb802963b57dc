package resolver

import (
	"encoding/json"

	"github.com/musterhq/muster/resolver/access"
)

// The names of commands. They are in the log: never change the meaning of one.
const (
	CommandBootstrap     = "account.bootstrap"
	CommandAppSecretSet  = "app_secret.set"
	CommandSettingsSet   = "settings.set"
	CommandSegmentCreate = "segment.create"
	CommandSegmentUpdate = "segment.update"
	CommandSegmentDelete = "segment.delete"

	CommandCompanyCreate = "company.create"
	CommandCompanyUpdate = "company.update"
	CommandCreditsAdd    = "credits.add"
)

// Bootstrap makes the first account of an empty partition. The account's
// number is the record's.
type Bootstrap struct {
	ApplyVersion int           `json:"apply_version"`
	Company      Company       `json:"company"`
	HashKey      string        `json:"hash_key"`    // 16 random bytes in hexadecimal
	SecretHash   string        `json:"secret_hash"` // SHA-256 of the App Secret, in hexadecimal
	Settings     Settings      `json:"settings"`
	User         access.User   `json:"user"`
	APIKey       access.APIKey `json:"api_key"`
	// EmailCredits is how many e-mails the company may send at first; nil for the
	// usual number.
	EmailCredits *int64 `json:"email_credits,omitempty"`
}

// AppSecretSet replaces the App Secret.
type AppSecretSet struct {
	SecretHash string `json:"secret_hash"`
}

// SegmentSave creates a segment, or changes the one with the ID.
type SegmentSave struct {
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	// IfVersion is the version that is replaced, see [Segment.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// SegmentDelete removes a segment that no other refers to.
type SegmentDelete struct {
	ID string `json:"id"`
}
