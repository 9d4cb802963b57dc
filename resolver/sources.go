package resolver

import (
	"cmp"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of sources.
const (
	CommandSourceCreate    = "source.create"
	CommandSourceUpdate    = "source.update"
	CommandSourceDelete    = "source.delete"
	CommandSourceKeyCreate = "source.key.create"
	CommandSourceKeyRevoke = "source.key.revoke"
	CommandSourcesUsed     = "sources.used"
)

// The kinds of sources.
const (
	// SourceBrowser is code that anybody can read: its keys are public, and what they may
	// do is less.
	SourceBrowser = "browser"
	// SourceServer is an application of the company's own.
	SourceServer = "server"
)

// What the userId of a call is.
const (
	UserIDIsExternalID = "external_id"
	UserIDIsEmail      = "email"
)

// The bounds of sources.
const (
	maxSources = 100 // of an account
	// maxWriteKeys bounds the keys of a source that hold.
	maxWriteKeys = 20
	// maxWriteKeyRecords counts revoked keys too; then the one that was revoked first makes
	// room.
	maxWriteKeyRecords = 200
	maxOrigins         = 50
	maxOriginBytes     = 300
)

// WriteKeyPrefix begins every write key.
const WriteKeyPrefix = "wk_"

// AnyOrigin among the allowed origins of a source allows them all.
const AnyOrigin = "*"

// Source is an application that sends events through the tracking API.
type Source struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"` // SourceBrowser or SourceServer; it never changes
	// Disabled turns all its calls away.
	Disabled bool `json:"disabled,omitempty"`
	// AllowedOrigins are the origins of pages that may send with its keys, such as
	// https://shop.example or https://*.shop.example, or AnyOrigin. A server source has none.
	AllowedOrigins []string `json:"allowed_origins,omitempty"`
	UserID         string   `json:"user_id"` // UserIDIsExternalID or UserIDIsEmail
	// KeepContext keeps the context of calls among the properties of events.
	KeepContext bool       `json:"keep_context,omitempty"`
	CreatedMs   int64      `json:"created_ms"`
	UpdatedMs   int64      `json:"updated_ms"`
	Keys        []WriteKey `json:"keys"` // the oldest first
}

// WriteKey lets calls of a source in.
type WriteKey struct {
	ID   string `json:"id"`
	Hash string `json:"hash"` // SHA-256 of the key, in hexadecimal
	// Text is the key itself, of a browser source: it is public anyway, and the console
	// shows snippets with it. It is empty for keys of a server source.
	Text      string `json:"text,omitempty"`
	CreatedMs int64  `json:"created_ms"`
	// LastUsedMs is 0 before the first use. It lags behind by up to a minute.
	LastUsedMs int64 `json:"last_used_ms,omitempty"`
	// RevokedMs is 0 while the key holds. A revoked key keeps its record.
	RevokedMs int64 `json:"revoked_ms,omitempty"`
}

// NewWriteKey is a key as a command brings it.
type NewWriteKey struct {
	Hash string `json:"hash"`           // SHA-256 of the key, in hexadecimal
	Text string `json:"text,omitempty"` // for a browser source
}

// SourceSave creates a source with its first key, or changes what is set of the one with
// the ID.
type SourceSave struct {
	ID             string       `json:"id,omitempty"`
	Kind           string       `json:"kind,omitempty"` // at creation
	Key            *NewWriteKey `json:"key,omitempty"`  // at creation
	Name           *string      `json:"name,omitempty"`
	Enabled        *bool        `json:"enabled,omitempty"`
	AllowedOrigins *[]string    `json:"allowed_origins,omitempty"`
	UserID         *string      `json:"user_id,omitempty"`
	KeepContext    *bool        `json:"keep_context,omitempty"`
}

// SourceRef names a source, and one of its keys or a new one.
type SourceRef struct {
	ID    string       `json:"id"`
	KeyID string       `json:"key_id,omitempty"`
	Key   *NewWriteKey `json:"key,omitempty"`
}

// SourcesUsed says when write keys were used last. It is of all accounts of the partition,
// so that not every use makes a record.
type SourcesUsed struct {
	Uses []SourceUse `json:"uses"`
}

// SourceUse is the last use of a write key.
type SourceUse struct {
	Account  uint64 `json:"account"`
	SourceID string `json:"source_id"`
	KeyID    string `json:"key_id"`
	AtMs     int64  `json:"at_ms"`
}

func noSource() *Refusal { return notFound("id", "there is no source with this id") }

// saveSource makes s part of the state, in place of the one with its id.
func (m *Machine) saveSource(a *account, s *Source) {
	m.accountsChanged = true
	m.putSource(a, s)
}

// putSource is saveSource for what requests need not know of.
func (m *Machine) putSource(a *account, s *Source) {
	a.sources[s.ID] = s
	m.store.PutEntity(state.EntityKey(a.number, state.EntitySource, s.ID), must.JSON(s))
}

func (m *Machine) createSource(cmd *command, c SourceSave) *Refusal {
	a := cmd.account
	switch {
	case len(a.sources) >= maxSources:
		return atLimit("", "this account has %d sources, the most it can have; delete one first", maxSources)
	case c.Kind != SourceBrowser && c.Kind != SourceServer:
		return invalid("kind", "kind Input should be browser or server")
	case c.Name == nil:
		return invalid("name", "name is missing; name the application that sends events")
	case c.Key == nil:
		return invalid("key", "key is missing")
	}
	s := &Source{ID: feature.NewID("src_", cmd.env.ID), Kind: c.Kind, UserID: UserIDIsExternalID, CreatedMs: m.logTime}
	if s.Kind == SourceBrowser {
		s.AllowedOrigins = []string{AnyOrigin}
	}
	if r := s.change(&c, m.logTime); r != nil {
		return r
	}
	if r := a.addWriteKey(s, cmd, c.Key, m.logTime); r != nil {
		return r
	}
	m.saveSource(a, s)
	cmd.reply(map[string]string{"id": s.ID, "key_id": s.Keys[0].ID})
	return nil
}

func (m *Machine) updateSource(cmd *command, c SourceSave) *Refusal {
	old := cmd.account.sources[c.ID]
	if old == nil {
		return noSource()
	}
	s := *old
	if r := s.change(&c, m.logTime); r != nil {
		return r
	}
	m.saveSource(cmd.account, &s)
	cmd.reply(map[string]string{"id": s.ID})
	return nil
}

// change sets what c sets.
func (s *Source) change(c *SourceSave, nowMs int64) *Refusal {
	if c.Name != nil {
		if r := refuse.Name(*c.Name); r != nil {
			return r
		}
		s.Name = strings.TrimSpace(*c.Name)
	}
	if c.Enabled != nil {
		s.Disabled = !*c.Enabled
	}
	if c.AllowedOrigins != nil {
		if s.Kind == SourceServer && len(*c.AllowedOrigins) > 0 {
			return invalid("allowed_origins", "allowed_origins: a server source has none; pages send with the key of a browser source")
		}
		if len(*c.AllowedOrigins) > maxOrigins {
			return invalid("allowed_origins", "allowed_origins must have at most %d entries", maxOrigins)
		}
		list := make([]string, 0, len(*c.AllowedOrigins))
		for _, o := range *c.AllowedOrigins {
			origin, ok := parseOrigin(o)
			if !ok {
				return invalid("allowed_origins", `allowed_origins: %q is no origin; use scheme and host, such as https://shop.example or https://*.shop.example, or "*" for all`, clip.Valid(o, 100))
			}
			if !slices.Contains(list, origin) {
				list = append(list, origin)
			}
		}
		s.AllowedOrigins = list
	}
	if c.UserID != nil {
		if *c.UserID != UserIDIsExternalID && *c.UserID != UserIDIsEmail {
			return invalid("user_id", "user_id Input should be external_id or email")
		}
		s.UserID = *c.UserID
	}
	if c.KeepContext != nil {
		s.KeepContext = *c.KeepContext
	}
	s.UpdatedMs = nowMs
	return nil
}

// parseOrigin reads an entry of allowed origins: AnyOrigin, or a scheme and a host in lower
// case whose first label may be *.
func parseOrigin(text string) (origin string, ok bool) {
	if text == AnyOrigin {
		return text, true
	}
	if len(text) > maxOriginBytes {
		return "", false
	}
	text = strings.ToLower(text)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != text {
		return "", false
	}
	host := strings.TrimPrefix(u.Host, "*.")
	return text, host != "" && !strings.ContainsAny(host, "*\"<>\\ ,")
}

// OriginAllowed reports whether pages of an origin may send with the keys of a source.
func (s *SourceAccess) OriginAllowed(origin string) bool {
	origin = strings.ToLower(origin)
	for _, allowed := range s.AllowedOrigins {
		if allowed == AnyOrigin || allowed == origin {
			return true
		}
		scheme, domain, wild := strings.Cut(allowed, "://*.")
		if rest, same := strings.CutPrefix(origin, scheme+"://"); wild && same && strings.HasSuffix(rest, "."+domain) {
			return true
		}
	}
	return false
}

// addWriteKey adds a key to a source that is not in the state yet.
func (a *account) addWriteKey(s *Source, cmd *command, k *NewWriteKey, nowMs int64) *Refusal {
	hash, ok := access.ParseHash(k.Hash)
	switch {
	case !ok:
		return invalid("hash", "hash must be 32 bytes in hexadecimal")
	case (k.Text != "") != (s.Kind == SourceBrowser):
		return invalid("text", "text must be the key of a browser source, and nothing for a server source")
	case len(k.Text) > refuse.MaxNameBytes:
		return invalid("text", "text must have at most %d bytes", refuse.MaxNameBytes)
	}
	text := hex.EncodeToString(hash[:])
	for _, other := range a.sources {
		if slices.ContainsFunc(other.Keys, func(k WriteKey) bool { return k.Hash == text }) {
			return conflicts("hash", "this key was made before")
		}
	}
	holding, oldest := 0, -1
	for i := range s.Keys {
		switch r := s.Keys[i].RevokedMs; {
		case r == 0:
			holding++
		case oldest < 0 || r < s.Keys[oldest].RevokedMs:
			oldest = i
		}
	}
	if holding >= maxWriteKeys {
		return atLimit("", "this source has %d write keys, the most it can have; revoke one first", maxWriteKeys)
	}
	keys := slices.Clone(s.Keys)
	if len(keys) >= maxWriteKeyRecords {
		keys = slices.Delete(keys, oldest, oldest+1)
	}
	s.Keys = append(keys, WriteKey{ID: feature.NewID("wky_", cmd.env.ID), Hash: text, Text: k.Text, CreatedMs: nowMs})
	return nil
}

func (m *Machine) deleteSource(cmd *command, c SourceRef) *Refusal {
	a := cmd.account
	if a.sources[c.ID] == nil {
		return noSource()
	}
	delete(a.sources, c.ID)
	m.accountsChanged = true
	m.store.PutEntity(state.EntityKey(a.number, state.EntitySource, c.ID), nil)
	return nil
}

func (m *Machine) createSourceKey(cmd *command, c SourceRef) *Refusal {
	old := cmd.account.sources[c.ID]
	switch {
	case old == nil:
		return noSource()
	case c.Key == nil:
		return invalid("key", "key is missing")
	}
	s := *old
	if r := cmd.account.addWriteKey(&s, cmd, c.Key, m.logTime); r != nil {
		return r
	}
	s.UpdatedMs = m.logTime
	m.saveSource(cmd.account, &s)
	cmd.reply(map[string]string{"id": s.ID, "key_id": s.Keys[len(s.Keys)-1].ID})
	return nil
}

func (m *Machine) revokeSourceKey(cmd *command, c SourceRef) *Refusal {
	old := cmd.account.sources[c.ID]
	if old == nil {
		return noSource()
	}
	i := slices.IndexFunc(old.Keys, func(k WriteKey) bool { return k.ID == c.KeyID })
	if i < 0 {
		return notFound("key_id", "there is no write key with this id at this source")
	}
	cmd.reply(map[string]string{"id": old.ID, "key_id": c.KeyID})
	if old.Keys[i].RevokedMs != 0 {
		return nil
	}
	s := *old
	s.Keys = slices.Clone(old.Keys)
	s.Keys[i].RevokedMs, s.UpdatedMs = max(1, m.logTime), m.logTime
	m.saveSource(cmd.account, &s)
	return nil
}

func (m *Machine) recordSourceUses(_ *command, c SourcesUsed) *Refusal {
	if len(c.Uses) > MaxKeyUses {
		return invalid("uses", "uses must have at most %d values", MaxKeyUses)
	}
	for _, u := range c.Uses {
		a := m.accounts[u.Account]
		if a == nil {
			continue
		}
		// The source or its key may have gone since it was used.
		old := a.sources[u.SourceID]
		if old == nil {
			continue
		}
		if i := slices.IndexFunc(old.Keys, func(k WriteKey) bool { return k.ID == u.KeyID && k.LastUsedMs < u.AtMs }); i >= 0 {
			s := *old
			s.Keys = slices.Clone(old.Keys)
			s.Keys[i].LastUsedMs = u.AtMs
			m.putSource(a, &s)
		}
	}
	return nil
}

// SourceAccess is what a call with a write key may do.
type SourceAccess struct {
	Account      uint64
	SourceID     string
	Name         string // of the source
	KeyID        string
	Public       bool // it is the key of a browser source
	Enabled      bool // the source is
	UserIDIs     string
	KeepContext  bool
	KeyHash      [32]byte
	AccountAlive bool // the account is active
	// AllowedOrigins must not be changed.
	AllowedOrigins []string
}

// WriteKeys are the write keys that hold, by the SHA-256 of their text.
func (m *Machine) WriteKeys() map[[32]byte]SourceAccess {
	out := map[[32]byte]SourceAccess{}
	for _, a := range m.byIndex {
		for _, s := range a.sources {
			for _, k := range s.Keys {
				if hash, ok := access.ParseHash(k.Hash); ok && k.RevokedMs == 0 {
					out[hash] = SourceAccess{
						Account: a.number, SourceID: s.ID, Name: s.Name, KeyID: k.ID, KeyHash: hash, Public: s.Kind == SourceBrowser, Enabled: !s.Disabled,
						AccountAlive: !a.Deactivated, UserIDIs: s.UserID, KeepContext: s.KeepContext, AllowedOrigins: s.AllowedOrigins,
					}
				}
			}
		}
	}
	return out
}

// Sources lists the account's sources, the oldest first.
func (v *View) Sources() []Source {
	out := make([]Source, 0, len(v.a.sources))
	for _, s := range v.a.sources {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(x, y Source) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
	return out
}

// Source finds a source by its id. Its lists must not be changed.
func (v *View) Source(id string) (Source, bool) {
	if s := v.a.sources[id]; s != nil {
		return *s, true
	}
	return Source{}, false
}
