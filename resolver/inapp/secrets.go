package inapp

import (
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

const (
	// MaxOrigins is how many origins may show messages.
	MaxOrigins = 50
	// MaxOverlapHours is how long a secret can hold beside the one that takes its place.
	MaxOverlapHours = 7 * 24
	minSecretBytes  = 32
	maxSecretBytes  = 128
	// maxSecrets is how many hold at once: the new one, and the one that it replaces.
	maxSecrets = 2
	hourMs     = 60 * 60 * 1000
)

// Secret signs tokens until a time.
type Secret struct {
	Text      string `json:"text"`
	CreatedMs int64  `json:"created_ms"`
	UntilMs   int64  `json:"until_ms,omitempty"` // Unix ms; 0 is for good
}

// String hides what is secret.
func (Secret) String() string { return "(secret)" }

// GoString hides what is secret from %#v.
func (s Secret) GoString() string { return s.String() }

// Settings are how pages show the messages of an account.
type Settings struct {
	Secrets []Secret `json:"secrets,omitempty"` // the newest first
	// AllowedOrigins are the sites whose pages may show messages.
	AllowedOrigins []string `json:"allowed_origins,omitempty"`
	UpdatedMs      int64    `json:"updated_ms,omitempty"`
}

// Valid are the texts of the secrets that hold at an instant.
func (s *Settings) Valid(nowMs int64) (texts []string) {
	for _, x := range s.Secrets {
		if x.UntilMs == 0 || nowMs < x.UntilMs {
			texts = append(texts, x.Text)
		}
	}
	return texts
}

// Configure are the arguments of [CommandConfigure].
type Configure struct {
	AllowedOrigins []string `json:"allowed_origins"`
}

// Rotate are the arguments of [CommandRotate]: a new secret.
type Rotate struct {
	Secret string `json:"secret"`
	// OverlapHours is how long the secret that it replaces holds; with 0 it ends at once.
	OverlapHours int `json:"overlap_hours,omitempty"`
}

func (s *State) configure(tx *feature.Tx, c Configure) *refuse.Refusal {
	list, r := refuse.Origins(c.AllowedOrigins, MaxOrigins)
	if r != nil {
		return r
	}
	next := s.Settings()
	next.AllowedOrigins, next.UpdatedMs = list, tx.AtMs
	s.settings.Put(tx, settingsName, &next)
	return nil
}

func (s *State) rotate(tx *feature.Tx, c Rotate) *refuse.Refusal {
	switch {
	case len(c.Secret) < minSecretBytes || len(c.Secret) > maxSecretBytes:
		return refuse.Invalid("secret", "secret must have %d to %d bytes", minSecretBytes, maxSecretBytes)
	case c.OverlapHours < 0 || c.OverlapHours > MaxOverlapHours:
		return refuse.Invalid("overlap_hours", "overlap_hours must be from 0 to %d", MaxOverlapHours)
	}
	old := s.Settings()
	next := old
	next.Secrets = []Secret{{Text: c.Secret, CreatedMs: tx.AtMs}}
	if len(old.Secrets) > 0 && c.OverlapHours > 0 {
		x := old.Secrets[0]
		x.UntilMs = tx.AtMs + int64(c.OverlapHours)*hourMs
		next.Secrets = append(next.Secrets, x)[:maxSecrets]
	}
	next.UpdatedMs = tx.AtMs
	s.settings.Put(tx, settingsName, &next)
	return nil
}

// Settings are the account's. They must not be changed.
func (s *State) Settings() Settings {
	if x := s.settings.Get(settingsName); x != nil {
		return *x
	}
	return Settings{}
}
