// Package sources is the applications that send events of an account through the tracking
// API, and the write keys that authenticate them.
package sources

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/weborigin"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of sources.
const (
	CommandCreate    = "source.create"
	CommandUpdate    = "source.update"
	CommandDelete    = "source.delete"
	CommandKeyCreate = "source.key.create"
	CommandKeyRevoke = "source.key.revoke"
	CommandUsed      = "sources.used"
)

// The kinds of sources.
const (
	// Browser is code that anybody can read: its keys are public, and what they may
	// do is less.
	Browser = "browser"
	// Server is an application of the company's own.
	Server = "server"
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
	MaxOrigins         = 50
)

// WriteKeyPrefix begins every write key.
const WriteKeyPrefix = "wk_"

// AnyOrigin among the allowed origins of a source allows them all.
const AnyOrigin = weborigin.Any

// Source is an application that sends events through the tracking API.
type Source struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"` // Browser or Server; it never changes
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

// Save creates a source with its first key, or changes what is set of the one with
// the ID.
type Save struct {
	ID             string       `json:"id,omitempty"`
	Kind           string       `json:"kind,omitempty"` // at creation
	Key            *NewWriteKey `json:"key,omitempty"`  // at creation
	Name           *string      `json:"name,omitempty"`
	Enabled        *bool        `json:"enabled,omitempty"`
	AllowedOrigins *[]string    `json:"allowed_origins,omitempty"`
	UserID         *string      `json:"user_id,omitempty"`
	KeepContext    *bool        `json:"keep_context,omitempty"`
}

// Ref names a source, and one of its keys or a new one.
type Ref struct {
	ID    string       `json:"id"`
	KeyID string       `json:"key_id,omitempty"`
	Key   *NewWriteKey `json:"key,omitempty"`
}

// Used says when write keys were used last. It is of all accounts of the partition,
// so that not every use makes a record.
type Used struct {
	Uses []Use `json:"uses"`
}

// Use is the last use of a write key.
type Use struct {
	Account  uint64 `json:"account"`
	SourceID string `json:"source_id"`
	KeyID    string `json:"key_id"`
	AtMs     int64  `json:"at_ms"`
}

// State is the sources of one account.
type State struct {
	table feature.Table[Source]
}

// New is the state of an account without sources.
func New() *State { return &State{feature.NewTable[Source](state.EntitySource)} }

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandCreate:    feature.Do((*State).create),
	CommandUpdate:    feature.Do((*State).update),
	CommandDelete:    feature.Do((*State).remove),
	CommandKeyCreate: feature.Do((*State).createKey),
	CommandKeyRevoke: feature.Do((*State).revokeKey),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	return s.table.LoadKind(kind, name, value)
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.table.Hash(put)
	return nil
}

func noSource() *refuse.Refusal {
	return refuse.NotFound("id", "there is no source with this id")
}

// save makes x part of the state, in place of the one with its id.
func (s *State) save(tx *feature.Tx, x *Source) {
	tx.AccessChanged = true
	s.table.Put(tx, x.ID, x)
}

func (s *State) create(tx *feature.Tx, c Save) *refuse.Refusal {
	switch {
	case s.table.Len() >= maxSources:
		return refuse.AtLimit("", "this account has %d sources, the most it can have; delete one first", maxSources)
	case c.Kind != Browser && c.Kind != Server:
		return refuse.Invalid("kind", "kind Input should be browser or server")
	case c.Name == nil:
		return refuse.Invalid("name", "name is missing; name the application that sends events")
	case c.Key == nil:
		return refuse.Invalid("key", "key is missing")
	}
	x := &Source{ID: feature.NewID("src_", tx.Record), Kind: c.Kind, UserID: UserIDIsExternalID, CreatedMs: tx.AtMs}
	if x.Kind == Browser {
		x.AllowedOrigins = []string{AnyOrigin}
	}
	if r := x.change(&c, tx.AtMs); r != nil {
		return r
	}
	if r := s.addKey(tx, x, c.Key); r != nil {
		return r
	}
	s.save(tx, x)
	tx.Reply = map[string]string{"id": x.ID, "key_id": x.Keys[0].ID}
	return nil
}

func (s *State) update(tx *feature.Tx, c Save) *refuse.Refusal {
	old := s.table.Get(c.ID)
	if old == nil {
		return noSource()
	}
	x := *old
	if r := x.change(&c, tx.AtMs); r != nil {
		return r
	}
	s.save(tx, &x)
	tx.Reply = map[string]string{"id": x.ID}
	return nil
}

// change sets what c sets.
func (s *Source) change(c *Save, nowMs int64) *refuse.Refusal {
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
		if s.Kind == Server && len(*c.AllowedOrigins) > 0 {
			return refuse.Invalid("allowed_origins", "allowed_origins: a server source has none; pages send with the key of a browser source")
		}
		list, r := refuse.Origins(*c.AllowedOrigins, MaxOrigins)
		if r != nil {
			return r
		}
		s.AllowedOrigins = list
	}
	if c.UserID != nil {
		if *c.UserID != UserIDIsExternalID && *c.UserID != UserIDIsEmail {
			return refuse.Invalid("user_id", "user_id Input should be external_id or email")
		}
		s.UserID = *c.UserID
	}
	if c.KeepContext != nil {
		s.KeepContext = *c.KeepContext
	}
	s.UpdatedMs = nowMs
	return nil
}

// OriginAllowed reports whether pages of an origin may send with the keys of a source.
func (s *Access) OriginAllowed(origin string) bool {
	return weborigin.Allowed(s.AllowedOrigins, origin)
}

// addKey adds a key to a source that is not in the state yet.
func (s *State) addKey(tx *feature.Tx, x *Source, k *NewWriteKey) *refuse.Refusal {
	hash, ok := feature.ParseHash(k.Hash)
	switch {
	case !ok:
		return refuse.Invalid("hash", "hash must be 32 bytes in hexadecimal")
	case (k.Text != "") != (x.Kind == Browser):
		return refuse.Invalid("text", "text must be the key of a browser source, and nothing for a server source")
	case len(k.Text) > refuse.MaxNameBytes:
		return refuse.Invalid("text", "text must have at most %d bytes", refuse.MaxNameBytes)
	}
	text := hex.EncodeToString(hash[:])
	for _, other := range s.table.All() {
		if slices.ContainsFunc(other.Keys, func(k WriteKey) bool { return k.Hash == text }) {
			return refuse.Conflicts("hash", "this key was made before")
		}
	}
	holding, oldest := 0, -1
	for i := range x.Keys {
		switch r := x.Keys[i].RevokedMs; {
		case r == 0:
			holding++
		case oldest < 0 || r < x.Keys[oldest].RevokedMs:
			oldest = i
		}
	}
	if holding >= maxWriteKeys {
		return refuse.AtLimit("", "this source has %d write keys, the most it can have; revoke one first", maxWriteKeys)
	}
	keys := slices.Clone(x.Keys)
	if len(keys) >= maxWriteKeyRecords {
		keys = slices.Delete(keys, oldest, oldest+1)
	}
	x.Keys = append(keys, WriteKey{ID: feature.NewID("wky_", tx.Record), Hash: text, Text: k.Text, CreatedMs: tx.AtMs})
	return nil
}

func (s *State) remove(tx *feature.Tx, c Ref) *refuse.Refusal {
	if s.table.Get(c.ID) == nil {
		return noSource()
	}
	tx.AccessChanged = true
	s.table.Delete(tx, c.ID)
	return nil
}

func (s *State) createKey(tx *feature.Tx, c Ref) *refuse.Refusal {
	old := s.table.Get(c.ID)
	switch {
	case old == nil:
		return noSource()
	case c.Key == nil:
		return refuse.Invalid("key", "key is missing")
	}
	x := *old
	if r := s.addKey(tx, &x, c.Key); r != nil {
		return r
	}
	x.UpdatedMs = tx.AtMs
	s.save(tx, &x)
	tx.Reply = map[string]string{"id": x.ID, "key_id": x.Keys[len(x.Keys)-1].ID}
	return nil
}

func (s *State) revokeKey(tx *feature.Tx, c Ref) *refuse.Refusal {
	old := s.table.Get(c.ID)
	if old == nil {
		return noSource()
	}
	i := slices.IndexFunc(old.Keys, func(k WriteKey) bool { return k.ID == c.KeyID })
	if i < 0 {
		return refuse.NotFound("key_id", "there is no write key with this id at this source")
	}
	tx.Reply = map[string]string{"id": old.ID, "key_id": c.KeyID}
	if old.Keys[i].RevokedMs != 0 {
		return nil
	}
	x := *old
	x.Keys = slices.Clone(old.Keys)
	x.Keys[i].RevokedMs, x.UpdatedMs = max(1, tx.AtMs), tx.AtMs
	s.save(tx, &x)
	return nil
}

// KeyUsed notes when a write key was used. It or its source may have gone since.
func (s *State) KeyUsed(tx *feature.Tx, sourceID, keyID string, atMs int64) {
	old := s.table.Get(sourceID)
	if old == nil {
		return
	}
	if i := slices.IndexFunc(old.Keys, func(k WriteKey) bool { return k.ID == keyID && k.LastUsedMs < atMs }); i >= 0 {
		x := *old
		x.Keys = slices.Clone(old.Keys)
		x.Keys[i].LastUsedMs = atMs
		s.table.Put(tx, x.ID, &x)
	}
}

// Access is what a call with a write key may do.
type Access struct {
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

// WriteKeys adds to out the account's write keys that hold, by the SHA-256 of their text.
// alive says that the account is active.
func (s *State) WriteKeys(out map[[32]byte]Access, account uint64, alive bool) {
	for _, x := range s.table.All() {
		for _, k := range x.Keys {
			if hash, ok := feature.ParseHash(k.Hash); ok && k.RevokedMs == 0 {
				out[hash] = Access{
					Account: account, SourceID: x.ID, Name: x.Name, KeyID: k.ID, KeyHash: hash, Public: x.Kind == Browser, Enabled: !x.Disabled,
					AccountAlive: alive, UserIDIs: x.UserID, KeepContext: x.KeepContext, AllowedOrigins: x.AllowedOrigins,
				}
			}
		}
	}
}

// All lists the account's sources, the oldest first.
func (s *State) All() []Source {
	return s.table.Sorted(func(x, y Source) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

// Get finds a source by its id. Its lists must not be changed.
func (s *State) Get(id string) (Source, bool) {
	if x := s.table.Get(id); x != nil {
		return *x, true
	}
	return Source{}, false
}
