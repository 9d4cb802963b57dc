package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/musterhq/muster/resolver"
)

// SecretPrefix begins every App Secret.
const SecretPrefix = "sk_live_"

// secretRandom is how many random bytes an App Secret has, and an API key
// behind the number of its account.
const secretRandom = 24

// newAppSecret answers POST /app-secret. From the answer on only the new secret
// holds.
func (a *API) newAppSecret(c *call) (any, error) {
	secret, err := randomText(a.opts.Rand, SecretPrefix, secretRandom)
	if err != nil {
		return nil, err
	}
	err = a.command(c, resolver.CommandAppSecretSet, resolver.AppSecretSet{SecretHash: hashText(secret)}, nil)
	if err != nil {
		return nil, err
	}
	return map[string]string{"app_id": resolver.AppID(c.account), "app_secret": secret}, nil
}

// getSettings answers GET /settings.
func (a *API) getSettings(c *call) (any, error) {
	var s resolver.Settings
	err := a.read(c, func(v *resolver.View) error {
		s = v.Settings()
		return nil
	})
	return shownSettings(s), err
}

// settings are the settings as they are answered, also those that have their defaults.
type settings struct {
	resolver.Settings
	IgnoreUnknownFields bool `json:"ignore_unknown_event_fields"`
	MaxEventAgeHours    int  `json:"max_event_age_hours"`
	FlowEventAgeHours   int  `json:"flow_event_age_hours"`
}

func shownSettings(s resolver.Settings) settings {
	s = s.Shown()
	return settings{s, s.IgnoreUnknownFields, s.MaxEventAgeHours, s.FlowEventAgeHours}
}

// setSettings answers PUT /settings, which takes them whole: a setting that is
// left out would otherwise fall back in silence. Those that came later may be left out,
// and stay as they are.
func (a *API) setSettings(c *call) (any, error) {
	fields := map[string]json.RawMessage{}
	if err := a.decode(c, &fields); err != nil {
		return nil, err
	}
	whole, err := json.Marshal(resolver.Settings{})
	if err != nil {
		return nil, err
	}
	want := map[string]json.RawMessage{}
	if err := json.Unmarshal(whole, &want); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, ok := fields[name]; !ok || string(v) == "null" {
			return nil, badField(name, "%s is missing; send all settings, as GET %s/settings answers them", name, Prefix)
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var s resolver.Settings
	if err := decodeStrict(body, &s); err != nil {
		return nil, err
	}
	if r := s.Validate(); r != nil {
		return nil, r
	}
	var old resolver.Settings
	if err := a.read(c, func(v *resolver.View) error { old = v.Settings(); return nil }); err != nil {
		return nil, err
	}
	for name, keep := range map[string]func(){
		"ignore_unknown_event_fields": func() { s.IgnoreUnknownFields = old.IgnoreUnknownFields },
		"max_event_age_hours":         func() { s.MaxEventAgeHours = old.MaxEventAgeHours },
		"flow_event_age_hours":        func() { s.FlowEventAgeHours = old.FlowEventAgeHours },
	} {
		if _, given := fields[name]; !given {
			keep()
		}
	}
	if s.SurfaceCPerMinute > old.SurfaceCPerMinute && !c.user.Admin {
		return nil, &problem{status: http.StatusForbidden, field: "surface_c_per_minute",
			message: "surface_c_per_minute: only a system administrator raises it"}
	}
	if err := a.command(c, resolver.CommandSettingsSet, s, nil); err != nil {
		return nil, err
	}
	return shownSettings(s), nil
}
