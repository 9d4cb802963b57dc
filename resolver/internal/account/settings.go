package account

import (
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/pacing"
)

// Settings change what Apply does, so they are part of the state and changed
// by records only.
type Settings struct {
	// Placeholders are values that are no identifiers, compared trimmed and
	// lower-cased.
	Placeholders []string `json:"placeholders"`
	// IdentifierCap is how many identifiers a profile may hold.
	IdentifierCap int `json:"identifier_cap"`
	// IdempotencyHours is how long an idempotency key holds, in hours of log
	// time.
	IdempotencyHours int `json:"idempotency_hours"`
	// DoubleOptIn says that who subscribes to e-mail must confirm it first.
	DoubleOptIn bool `json:"double_opt_in"`
	// ConfirmTemplateID is the template of the message that asks for it; without
	// one the service has its own words.
	ConfirmTemplateID string `json:"confirm_template_id,omitempty"`
	// RequireOptIn says that campaigns and e-mails of flows go to subscribers only, not
	// also to those who never said yes or no.
	RequireOptIn bool `json:"require_opt_in"`
	// SurfaceCPerMinute is how many requests of Surface C an API key may make
	// in any 60 seconds.
	SurfaceCPerMinute int `json:"surface_c_per_minute"`
	// IgnoreUnknownFields says that events may have top-level fields that no rule knows.
	// Else they are refused.
	IgnoreUnknownFields bool `json:"ignore_unknown_event_fields,omitempty"`
	// MaxEventAgeHours is how old an event with a timestamp may be when it is sent, in
	// hours of log time; 0 means 720. Imports take events of any age.
	MaxEventAgeHours int `json:"max_event_age_hours,omitempty"`
	// FlowEventAgeHours is up to which age an event triggers flows, in hours of log time;
	// 0 means 24.
	FlowEventAgeHours int `json:"flow_event_age_hours,omitempty"`
	// PreferencePage is what the preference page says; nil for the service's own words.
	PreferencePage *PreferencePage `json:"preference_page,omitempty"`
	// SendingLimits are quiet hours, frequency caps and the account's time zone; nil for none,
	// and UTC.
	SendingLimits *pacing.Limits `json:"sending_limits,omitempty"`
	// Attribution says which clicks and opens orders belong to; nil for the defaults.
	Attribution *orders.Attribution `json:"revenue_attribution,omitempty"`
}

// DefaultSettings are written into the record that makes an account, so accounts keep
// those they were made with.
func DefaultSettings() Settings {
	return Settings{
		Placeholders: []string{
			"null", "nil", "none", "undefined", "unknown", "n/a", "na", "nan", "void", "empty", "blank",
			"anonymous", "anon", "guest", "user", "test", "true", "false", "0", "-1", "[object object]", "(null)",
			"00000000-0000-0000-0000-000000000000",
		},
		IdentifierCap:     50,
		IdempotencyHours:  72,
		RequireOptIn:      true,
		SurfaceCPerMinute: defaultSurfaceCPerMinute,
	}
}

// The bounds of settings.
const (
	maxPlaceholders     = 1000
	maxPlaceholderBytes = 256
	maxIdentifierCap    = 500
	maxIdempotencyHours = 24 * 90

	defaultMaxEventAgeHours  = 24 * 30
	defaultFlowEventAgeHours = 24
	maxEventAgeHours         = 24 * 366 * 10

	defaultSurfaceCPerMinute = 600
	MaxSurfaceCPerMinute     = 1_000_000
)

// Fill gives settings their defaults that records of before they existed lack.
func (s *Settings) Fill() {
	if s.SurfaceCPerMinute == 0 {
		s.SurfaceCPerMinute = defaultSurfaceCPerMinute
	}
}

// Shown returns the settings as clients see them: what is 0 has its default. The state
// keeps the 0, so that records of before a setting existed lead to the same state.
func (s Settings) Shown() Settings {
	if s.MaxEventAgeHours == 0 {
		s.MaxEventAgeHours = defaultMaxEventAgeHours
	}
	if s.FlowEventAgeHours == 0 {
		s.FlowEventAgeHours = defaultFlowEventAgeHours
	}
	return s
}

func (s *Settings) MaxEventAgeMs() int64 { return int64(s.Shown().MaxEventAgeHours) * 3_600_000 }

func (s *Settings) FlowEventAgeMs() int64 { return int64(s.Shown().FlowEventAgeHours) * 3_600_000 }

// Validate says what is wrong with the settings, nil if nothing is.
func (s *Settings) Validate() *refuse.Refusal {
	if len(s.Placeholders) > maxPlaceholders {
		return refuse.Invalid("placeholders", "placeholders must have at most %d values", maxPlaceholders)
	}
	for i, p := range s.Placeholders {
		if len(p) == 0 || len(p) > maxPlaceholderBytes || !utf8.ValidString(p) {
			return refuse.Invalid("placeholders", "placeholders[%d] must have 1 to %d bytes of UTF-8", i, maxPlaceholderBytes)
		}
	}
	if s.IdentifierCap < 1 || s.IdentifierCap > maxIdentifierCap {
		return refuse.Invalid("identifier_cap", "identifier_cap must be between 1 and %d", maxIdentifierCap)
	}
	if s.IdempotencyHours < 72 || s.IdempotencyHours > maxIdempotencyHours {
		return refuse.Invalid("idempotency_hours", "idempotency_hours must be between 72 and %d", maxIdempotencyHours)
	}
	if s.SurfaceCPerMinute < 1 || s.SurfaceCPerMinute > MaxSurfaceCPerMinute {
		return refuse.Invalid("surface_c_per_minute", "surface_c_per_minute must be between 1 and %d", MaxSurfaceCPerMinute)
	}
	if s.MaxEventAgeHours < 0 || s.MaxEventAgeHours > maxEventAgeHours {
		return refuse.Invalid("max_event_age_hours", "max_event_age_hours must be between 1 and %d, or 0 for %d", maxEventAgeHours, defaultMaxEventAgeHours)
	}
	if s.FlowEventAgeHours < 0 || s.FlowEventAgeHours > maxEventAgeHours {
		return refuse.Invalid("flow_event_age_hours", "flow_event_age_hours must be between 1 and %d, or 0 for %d", maxEventAgeHours, defaultFlowEventAgeHours)
	}
	if p := s.PreferencePage; p != nil {
		for _, f := range [...]struct {
			name, text string
			limit      int
		}{{"title", p.Title, MaxPageTitle}, {"text", p.Text, MaxPageText}} {
			if len(f.text) > f.limit || !utf8.ValidString(f.text) {
				return refuse.Invalid("preference_page", "preference_page.%s must have at most %d bytes of UTF-8", f.name, f.limit)
			}
		}
	}
	if s.Attribution != nil {
		if r := s.Attribution.Validate("revenue_attribution"); r != nil {
			return r
		}
	}
	if s.SendingLimits != nil {
		return s.SendingLimits.Validate("sending_limits")
	}
	return nil
}

func (s *Settings) IdempotencyMs() int64 { return int64(s.IdempotencyHours) * 3_600_000 }

// PreferencePage is what the preference page of an account says beside its channels and
// topics.
type PreferencePage struct {
	Title string `json:"title"` // "" for the service's own, as with the text
	Text  string `json:"text"`
}

const (
	MaxPageTitle = 200  // bytes
	MaxPageText  = 2000 // bytes
)
