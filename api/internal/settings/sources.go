package settings

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest/trackingapi"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/sources"
)

// Sources are the calls about sources of events.
func (a *API) Sources() handler.Group {
	key := shape.Named("WriteKey", shape.Object(
		shape.Req("_id", shape.WriteKeyID("")), shape.Req("key", shape.Text("wk_P5p8Ll0bgEYAAQ…", "The key itself, of a browser source: it is public. Null for a server source, whose keys are shown once.").OrNull()),
		shape.Req("created_at", shape.Instant("")), shape.Req("last_used_at", shape.Instant("Null before the first call.").OrNull()),
		shape.Req("revoked", shape.Boolean(false, "A revoked key keeps its record.")), shape.Req("revoked_at", shape.Instant("").OrNull()),
	))
	source := shape.Object(
		shape.Req("_id", shape.SourceID("")), shape.Req("name", shape.Text("Shop", "")), shape.Req("kind", sourceKind("")), shape.Req("enabled", shape.Boolean(true, "All calls of a source that is not are refused.")),
		shape.Req("allowed_origins", shape.List(shape.Text("https://shop.example", ""), "Pages that may send with the keys of a browser source. Empty for a server source.")),
		shape.Req("user_id", userIDIs("")), shape.Req("keep_context", shape.Boolean(false, "")),
		shape.Req("keys", shape.List(key, "The oldest first, also those revoked.")),
		shape.Req("created_at", shape.Instant("")), shape.Req("updated_at", shape.Instant("")), shape.Req("last_used_at", shape.Instant("When one of its keys was used last: null until the first call arrives.").OrNull()),
	)
	one := shape.Named("Source", source)
	made := shape.Named("SourceWithKey", source.Plus(shape.Req("write_key", shape.Text("wk_P5p8Ll0bgEYAAQ…", "The new key. One of a server source is shown this once."))))
	settings := []shape.Field{
		shape.Opt("enabled", shape.Boolean(true, "Whether its calls are taken.")),
		shape.Opt("allowed_origins", shape.List(shape.Text("https://shop.example", "").Bytes(1, 300), "Pages that may send with the keys of a browser source: scheme and host, such as `https://shop.example`; `https://*.shop.example` for all below; `*` for all, as a new source has it.").Entries(0, 50)),
		shape.Opt("user_id", userIDIs("What `userId` of its calls is.")),
		shape.Opt("keep_context", shape.Boolean(false, "Whether `context` of its calls is kept among the properties of events, as `context`.")),
	}
	body := func(name shape.Field, more ...shape.Field) *shape.Schema {
		return shape.Object(append(append([]shape.Field{name}, more...), settings...)...)
	}
	name := shape.Text("Shop", "The application that sends.").Bytes(1, 200)
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: sources", Title: "Sources",
		About: "Applications that send through the tracking API, with the SDKs of Segment, RudderStack or PostHog. A source has write keys, `wk_…`, which can send and nothing else. A browser's keys are public: they attach an anonymous person to an identified one, and never merge two identified people."}, Routes: []handler.Route{
		{Handle: a.listSources, Operation: operation.Operation{Method: "GET", Path: "/sources", Permission: "events:read", ID: "listSources", Summary: "List sources", About: "The oldest first.", Data: shape.List(one, ""), Paged: true}},
		{Handle: a.createSource, Operation: operation.Operation{Method: "POST", Path: "/sources", Permission: "events:write", ID: "createSource", Summary: "Create a source", About: "With its first write key.", Body: body(shape.Req("name", name), shape.Req("kind", sourceKind("`browser` for pages and apps, whose keys anybody can read; it never changes."))), Data: made}},
		{Handle: a.getSource, Operation: operation.Operation{Method: "GET", Path: "/sources/{id}", Permission: "events:read", ID: "getSource", Summary: "Read a source", Data: one}},
		{Handle: a.updateSource, Operation: operation.Operation{Method: "PATCH", Path: "/sources/{id}", Permission: "events:write", ID: "updateSource", Summary: "Change a source", About: "Omitted fields keep their values.", Body: body(shape.Opt("name", name)), Data: one}},
		{Handle: a.deleteSource, Operation: operation.Operation{Method: "DELETE", Path: "/sources/{id}", Permission: "events:write", ID: "deleteSource", Summary: "Delete a source", About: "Its keys stop working at once. Its events stay."}},
		{Handle: a.createSourceKey, Operation: operation.Operation{Method: "POST", Path: "/sources/{id}/keys", Permission: "events:write", ID: "createSourceKey", Summary: "Add a write key", About: "The others keep working. To rotate a key, add one, move the application to it, and revoke the old one.", Data: made}},
		{Handle: a.revokeSourceKey, Operation: operation.Operation{Method: "DELETE", Path: "/sources/{id}/keys/{key}", Permission: "events:write", ID: "revokeSourceKey", Summary: "Revoke a write key", About: "It stops working at once.", Data: one}},
	}}
}

func sourceKind(about string) *shape.Schema {
	return shape.Word(about, sources.Browser, sources.Server)
}

func userIDIs(about string) *shape.Schema {
	return shape.Word(about, sources.UserIDIsExternalID, sources.UserIDIsEmail)
}

// eventSource is a source as it is answered.
type eventSource struct {
	ID             string      `json:"_id"`
	Name           string      `json:"name"`
	Kind           string      `json:"kind"`
	Enabled        bool        `json:"enabled"`
	AllowedOrigins []string    `json:"allowed_origins"`
	UserID         string      `json:"user_id"`
	KeepContext    bool        `json:"keep_context"`
	Keys           []sourceKey `json:"keys"`
	CreatedAt      string      `json:"created_at"`
	UpdatedAt      string      `json:"updated_at"`
	LastUsedAt     *string     `json:"last_used_at"`
	// WriteKey is a key that was just made.
	WriteKey string `json:"write_key,omitempty"`
}

type sourceKey struct {
	ID         string  `json:"_id"`
	Key        *string `json:"key"`
	CreatedAt  string  `json:"created_at"`
	LastUsedAt *string `json:"last_used_at"`
	Revoked    bool    `json:"revoked"`
	RevokedAt  *string `json:"revoked_at"`
}

func (a *API) newSource(account uint64, s *sources.Source) eventSource {
	out := eventSource{
		ID: s.ID, Name: s.Name, Kind: s.Kind, Enabled: !s.Disabled, AllowedOrigins: s.AllowedOrigins, UserID: s.UserID, KeepContext: s.KeepContext,
		Keys: []sourceKey{}, CreatedAt: record.Time(s.CreatedMs), UpdatedAt: record.Time(s.UpdatedMs),
	}
	if out.AllowedOrigins == nil {
		out.AllowedOrigins = []string{}
	}
	last := int64(0)
	for i := range s.Keys {
		k := &s.Keys[i]
		used := max(k.LastUsedMs, a.opts.WriteKeyLastUsed(account, s.ID, k.ID))
		last = max(last, used)
		key := sourceKey{ID: k.ID, CreatedAt: record.Time(k.CreatedMs), LastUsedAt: record.TimeOrNull(used), Revoked: k.RevokedMs != 0, RevokedAt: record.TimeOrNull(k.RevokedMs)}
		if k.Text != "" {
			key.Key = &k.Text
		}
		out.Keys = append(out.Keys, key)
	}
	out.LastUsedAt = record.TimeOrNull(last)
	return out
}

var errNoSource = handler.NotFound("there is no source with this id")

func (a *API) listSources(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []sources.Source { return v.Sources().All() }, func(s *sources.Source) paging.Age { return paging.Age{CreatedMs: s.CreatedMs, ID: s.ID} },
		func(_ *resolver.View, s *sources.Source) eventSource { return a.newSource(c.Account, s) })
}

func (a *API) eventSource(c *handler.Call, id string) (out eventSource, err error) {
	err = c.Read(func(v *resolver.View) error {
		s, ok := v.Sources().Get(id)
		if !ok {
			return errNoSource
		}
		out = a.newSource(c.Account, &s)
		return nil
	})
	return out, err
}

func (a *API) getSource(c *handler.Call) (any, error) { return a.eventSource(c, c.PathID()) }

// sourceBody is a request about a source.
type sourceBody struct {
	Kind           string    `json:"kind"`
	Name           *string   `json:"name"`
	Enabled        *bool     `json:"enabled"`
	AllowedOrigins *[]string `json:"allowed_origins"`
	UserID         *string   `json:"user_id"`
	KeepContext    *bool     `json:"keep_context"`
}

func (b *sourceBody) save() sources.Save {
	return sources.Save{Kind: b.Kind, Name: b.Name, Enabled: b.Enabled, AllowedOrigins: b.AllowedOrigins, UserID: b.UserID, KeepContext: b.KeepContext}
}

// newWriteKey draws a write key for a source of a kind.
func (a *API) newWriteKey(c *handler.Call, kind string) (text string, k *sources.NewWriteKey, err error) {
	if text, err = trackingapi.NewKey(a.opts.Rand, c.Account); err != nil {
		return "", nil, err
	}
	k = &sources.NewWriteKey{Hash: tokens.Hash(text)}
	if kind == sources.Browser {
		k.Text = text
	}
	return text, k, nil
}

// createSource answers POST /sources.
func (a *API) createSource(c *handler.Call) (any, error) {
	var in sourceBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	text, key, err := a.newWriteKey(c, in.Kind)
	if err != nil {
		return nil, err
	}
	save := in.save()
	save.Key = key
	id, err := c.CommandID(sources.CommandCreate, save)
	if err != nil {
		return nil, err
	}
	out, err := a.eventSource(c, id)
	out.WriteKey = text
	return out, err
}

// updateSource answers PATCH /sources/{id}.
func (a *API) updateSource(c *handler.Call) (any, error) {
	var in sourceBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	save := in.save()
	save.ID = c.PathID()
	if _, err := c.CommandID(sources.CommandUpdate, save); err != nil {
		return nil, err
	}
	return a.eventSource(c, save.ID)
}

func (a *API) deleteSource(c *handler.Call) (any, error) {
	return nil, c.Command(sources.CommandDelete, sources.Ref{ID: c.PathID()}, nil)
}

// createSourceKey answers POST /sources/{id}/keys.
func (a *API) createSourceKey(c *handler.Call) (any, error) {
	s, err := a.eventSource(c, c.PathID())
	if err != nil {
		return nil, err
	}
	text, key, err := a.newWriteKey(c, s.Kind)
	if err != nil {
		return nil, err
	}
	if _, err := c.CommandID(sources.CommandKeyCreate, sources.Ref{ID: s.ID, Key: key}); err != nil {
		return nil, err
	}
	s, err = a.eventSource(c, s.ID)
	s.WriteKey = text
	return s, err
}

// revokeSourceKey answers DELETE /sources/{id}/keys/{key} with the source.
func (a *API) revokeSourceKey(c *handler.Call) (any, error) {
	if _, err := c.CommandID(sources.CommandKeyRevoke, sources.Ref{ID: c.PathID(), KeyID: c.Param("key")}); err != nil {
		return nil, err
	}
	return a.eventSource(c, c.PathID())
}
