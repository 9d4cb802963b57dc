package settings

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/pacing"
)

// Settings are the calls about settings.
func (a *API) Settings() handler.Group {
	settings := func() *shape.Schema {
		return shape.Object(
			shape.Req("placeholders", shape.List(shape.Text("anonymous", "").With("maxLength", 256), "Values that are no identifiers, compared trimmed and in lower case.").Entries(0, 1000)),
			shape.Req("identifier_cap", shape.Integer(50, "Identifiers a profile may hold.").Between(1, 500)),
			shape.Req("idempotency_hours", shape.Integer(72, "How long an idempotency key holds, in hours.").Between(72, 2160)),
			shape.Req("double_opt_in", shape.Boolean(false, "Who subscribes to e-mail must confirm it first.")),
			shape.Req("require_opt_in", shape.Boolean(true, "Campaigns and e-mails of flows go to subscribers only, not also to people who never said yes or no, such as those known from events alone. New companies have true.")),
			shape.Req("surface_c_per_minute", shape.Integer(600, "Requests of a key under `/v1` in any 60 seconds. Only administrators of the system raise it.").Between(1, 1000000)),
			shape.Opt("ignore_unknown_event_fields", shape.Boolean(false, "Events may have top-level fields that are not known; else they are refused.")),
			shape.Opt("max_event_age_hours", shape.Integer(720, "How old the timestamp of an event may be, in hours.").Between(0, 87840)),
			shape.Opt("flow_event_age_hours", shape.Integer(24, "Up to which age an event triggers flows, in hours.").Between(0, 87840)),
			shape.Opt("preference_page", shape.Object(shape.Req("title", shape.Text("What do you want to hear about?", "").Bytes(0, 200)), shape.Req("text", shape.Text("We write at most once a week.", "").Bytes(0, 2000))).
				Says("What the preference page of people says above topics and channels; left out of a change it stays as it is, null stands for the service's own words.").OrNull()),
			shape.Opt("sending_limits", sendingLimits().Says("When and how often people are sent messages of campaigns and flows; left out of a change it stays as it is, null is no limits and UTC. Single messages by the API and pushes by it are exempt.").OrNull()),
			shape.Opt("revenue_attribution", shape.Object(
				shape.Req("click_hours", shape.Integer(120, "After a click; 0 for none.").Between(0, 720)),
				shape.Req("open_hours", shape.Integer(24, "After an open; 0 for none.").Between(0, 720)),
			).Says("How long after the newest click or open of a message an order belongs to it. Left out of a change it stays as it is; null stands for the defaults, 120 and 24.").OrNull()),
			shape.Opt("confirm_template_id", shape.TemplateID("Template of the message that asks to confirm a subscription; left out, the service has its own words.")),
		)
	}
	answer := shape.Named("Settings", settings())
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: settings", Title: "Settings", About: "Settings of the account."}, Routes: []handler.Route{
		{Handle: a.getSettings, Operation: operation.Operation{Method: "GET", Path: "/settings", Permission: "settings:read", ID: "getSettings", Summary: "Read the settings", Data: answer}},
		settingsVersionsRoute(answer),
		{Handle: a.setSettings, Operation: operation.Operation{Method: "PUT", Path: "/settings", Permission: "settings:write", ID: "setSettings", Summary: "Replace the settings", About: "All fields are required.", Body: settings(), Data: answer}},
		{Handle: a.newAppSecret, Operation: operation.Operation{Method: "POST", Path: "/app-secret", Permission: "settings:write", ID: "newAppSecret", Summary: "Rotate the App Secret", About: "Only the new secret works once this call has answered. The App ID stays the same.",
			Data: shape.Object(shape.Req("app_id", shape.AppID("")), shape.Req("app_secret", shape.Text("sk_live_Zm9v…", "Shown this once.")))}},
	}}
}

// sendingLimits are quiet hours, frequency caps and the account's time zone.
func sendingLimits() *shape.Schema {
	channel := func(about string) *shape.Schema { return shape.Word(about, pacing.Channels[:]...) }
	return shape.Object(
		shape.Opt("timezone", shape.Text("Europe/Berlin", "The account's, a name of the IANA database: that of people whose own is not known.").Default("UTC")),
		shape.Opt("quiet_hours", shape.Object(
			shape.Req("from", shape.Text("22:00", "Of the person's clocks, as HH:MM.").Bytes(5, 5)),
			shape.Req("to", shape.Text("08:00", "Not after `from`, it is on the next day.").Bytes(5, 5)),
			shape.Opt("channels", shape.List(channel(""), "Those that they hold for; none are all but `in_app`.").Entries(0, len(pacing.Channels))),
			shape.Opt("then", shape.Word("Whether a message waits until they end, or the person is passed over with the reason `quiet_hours`.", pacing.ThenWait, pacing.ThenSkip).Default(pacing.ThenWait)),
		).Says("Null for none.").OrNull()),
		shape.Opt("frequency_caps", shape.List(shape.Object(
			shape.Opt("channel", channel("Whose messages count; left out, those of all channels together.")),
			shape.Req("messages", shape.Integer(3, "Messages that a person gets at most in any window; for another the person is passed over, with the reason `frequency_cap`.").Between(1, pacing.MaxMessages)),
			shape.Req("hours", shape.Integer(168, "Length of the window.").Between(1, pacing.MaxHours)),
		), "All of them hold. Messages count from when they are claimed for sending; those of before there were caps do not.").Entries(0, pacing.MaxCaps)),
	)
}

// newAppSecret answers POST /app-secret. From the answer on only the new secret
// holds.
func (a *API) newAppSecret(c *handler.Call) (any, error) {
	secret, err := tokens.Random(a.opts.Rand, tokens.SecretPrefix, tokens.SecretRandom)
	if err != nil {
		return nil, err
	}
	err = c.Command(resolver.CommandAppSecretSet, resolver.AppSecretSet{SecretHash: tokens.Hash(secret)}, nil)
	if err != nil {
		return nil, err
	}
	return map[string]string{"app_id": resolver.AppID(c.Account), "app_secret": secret}, nil
}

// getSettings answers GET /settings.
func (a *API) getSettings(c *handler.Call) (any, error) {
	var s resolver.Settings
	err := c.Read(func(v *resolver.View) error {
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

	PreferencePage *resolver.PreferencePage `json:"preference_page"`
	SendingLimits  *pacing.Limits           `json:"sending_limits"`
	Attribution    *orders.Attribution      `json:"revenue_attribution"`
}

func shownSettings(s resolver.Settings) settings {
	s = s.Shown()
	out := settings{s, s.IgnoreUnknownFields, s.MaxEventAgeHours, s.FlowEventAgeHours, s.PreferencePage, nil, s.Attribution.Shown()}
	if s.SendingLimits != nil {
		out.SendingLimits = s.SendingLimits.Shown()
	}
	return out
}

// setSettings answers PUT /settings, which takes them whole: a setting that is
// left out would otherwise fall back in silence. Those that came later may be left out,
// and stay as they are.
func (a *API) setSettings(c *handler.Call) (any, error) {
	fields := map[string]json.RawMessage{}
	if err := c.Decode(&fields); err != nil {
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
			return nil, handler.BadField(name, "%s is missing; send all settings, as GET %s/settings answers them", name, operation.SurfaceConsole.Prefix)
		}
	}
	if name := missingWindow(fields["revenue_attribution"]); name != "" {
		return nil, handler.BadField(name, "%s is missing; send both windows, or null for the defaults", name)
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var s resolver.Settings
	if err := handler.Decode(body, &s); err != nil {
		return nil, err
	}
	if r := s.Validate(); r != nil {
		return nil, r
	}
	var old resolver.Settings
	if err := c.Read(func(v *resolver.View) error { old = v.Settings(); return nil }); err != nil {
		return nil, err
	}
	for name, keep := range map[string]func(){
		"ignore_unknown_event_fields": func() { s.IgnoreUnknownFields = old.IgnoreUnknownFields },
		"max_event_age_hours":         func() { s.MaxEventAgeHours = old.MaxEventAgeHours },
		"preference_page":             func() { s.PreferencePage = old.PreferencePage },
		"sending_limits":              func() { s.SendingLimits = old.SendingLimits },
		"revenue_attribution":         func() { s.Attribution = old.Attribution },
		"flow_event_age_hours":        func() { s.FlowEventAgeHours = old.FlowEventAgeHours },
	} {
		if _, given := fields[name]; !given {
			keep()
		}
	}
	if old.Attribution == nil && s.Attribution != nil && *s.Attribution == *old.Attribution.Shown() {
		s.Attribution = nil // as it was answered: nothing has changed
	}
	if s.SurfaceCPerMinute > old.SurfaceCPerMinute && !c.User.Admin {
		return nil, &handler.Problem{Status: http.StatusForbidden, Field: "surface_c_per_minute",
			Message: "surface_c_per_minute: only a system administrator raises it"}
	}
	if err := c.Command(resolver.CommandSettingsSet, s, nil); err != nil {
		return nil, err
	}
	return shownSettings(s), nil
}

// missingWindow is the name of a window that an attribution of revenue lacks, "" for none. Taken
// for 0 hours it would end the attribution in silence.
func missingWindow(attribution json.RawMessage) string {
	var windows map[string]json.RawMessage
	if json.Unmarshal(attribution, &windows) != nil || windows == nil {
		return "" // left out, null, or of another type, which is refused when the settings are read
	}
	for _, name := range [...]string{"click_hours", "open_hours"} {
		if v, given := windows[name]; !given || string(v) == "null" {
			return "revenue_attribution." + name
		}
	}
	return ""
}

func settingsVersionsRoute(settings *shape.Schema) handler.Route {
	return handler.ContentVersionsRoute("/settings", "settings:read", "settingsVersions", "SettingsVersion", "the settings", "settings", settings, wholeSettings,
		func(*resolver.View, string) error { return nil })
}

// wholeSettings are settings as they are kept, with those that have their defaults.
func wholeSettings(content json.RawMessage) (json.RawMessage, error) {
	var s resolver.Settings
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, err
	}
	return json.Marshal(shownSettings(s))
}
