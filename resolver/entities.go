package resolver

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// Company owns accounts and users.
type Company struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Segment is a saved definition.
type Segment struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // canonical
	CreatedMs  int64           `json:"created_ms"`
	UpdatedMs  int64           `json:"updated_ms"`

	// Root is the parsed definition; it is never changed.
	Root *segment.Node `json:"-"`
}

// Version names the segment's content, see [SegmentSave].
func (s *Segment) Version() string { return feature.Version(s.Name, string(s.Definition)) }

// accountEntity is the part of an account that is stored as one entity.
type accountEntity struct {
	Company    Company  `json:"company"`
	CreatedMs  int64    `json:"created_ms"`
	HashKey    string   `json:"hash_key"`    // 16 bytes in hexadecimal
	SecretHash string   `json:"secret_hash"` // SHA-256 of the App Secret, in hexadecimal
	Settings   Settings `json:"settings"`
	// ForgottenMs is the log time up to which idempotency keys had expired when
	// the settings last changed. They stay expired when keys hold longer now,
	// whether a checkpoint has dropped them yet or not (R1).
	ForgottenMs int64 `json:"forgotten_ms"`
	// APIAccess lets API keys in; an administrator switches it.
	APIAccess bool `json:"api_access"`
	// Deactivated keeps everybody out: people, keys and applications.
	Deactivated bool `json:"deactivated,omitempty"`
	// EmailCredits is how many e-mails may still be sent.
	EmailCredits int64 `json:"email_credits"`
	// NextList and NextCampaign are the numbers of the next ones made. Numbers are
	// not used again: documents and links that are out hold them.
	NextList     uint32 `json:"next_list,omitempty"`
	NextCampaign uint32 `json:"next_campaign,omitempty"`
	// HasCatalog says that the account has a catalog of properties and attributes:
	// since it was made, or since its first events under rules that know of it.
	HasCatalog bool `json:"catalog,omitempty"`
	// HasConsentLog says that the account has a log of consents: since it was made, or since
	// it first used what came with it under rules that know of it.
	HasConsentLog bool `json:"consent_log,omitempty"`
}

// account is the state of one account.
type account struct {
	number uint64
	index  uint32 // dense number in this process, part of cache keys
	// tallied is what the machine's totals have of the account.
	tallied totals
	accountEntity
	secretHash [32]byte

	profiles *resolution.State
	engine   *engine.Engine
	segments map[string]*Segment
	imports  map[[32]byte]uint64 // file → first row that is missing
	sets     *profile.OrdinalSets
	sending  *sending.State
	features
}

// features are the parts of the account that are packages of their own.
type features struct {
	access        *access.State
	contacts      *contacts.State
	domains       *domains.State
	credentials   *credentials.State
	sources       *sources.State
	conversations *conversations.State
	outbox        *outbox.State
	campaigns     *campaigns.State
	types         *eventtypes.State
	flows         *automation.State
	erasure       *erasure.State
	audit         *audit.State
	consentLog    *consentlog.State
	forms         *forms.State
	pacing        *pacing.State
}

// all are the features in the order in which they take note of merges and erasures, which is
// part of the rules.
func (f *features) all() []feature.State {
	return []feature.State{f.access, f.contacts, f.domains, f.credentials, f.sources, f.conversations, f.outbox, f.campaigns, f.types, f.flows, f.erasure, f.audit, f.consentLog, f.forms, f.pacing}
}

func newAccount(number uint64, index uint32, outboxes *outbox.Shared) *account {
	a := &account{
		number:   number,
		index:    index,
		engine:   engine.New(),
		segments: map[string]*Segment{},
		imports:  map[[32]byte]uint64{},
		sets:     profile.NewOrdinalSets(),
		features: features{
			access: access.New(), domains: domains.New(), credentials: credentials.New(),
			sources: sources.New(), conversations: conversations.New(),
		},
	}
	a.erasure = erasure.New(number, func() identifier.Hasher { return a.profiles.Hasher })
	a.outbox = outbox.New(number, outboxes, a.hookCounts)
	return a
}

// keys reads the account's keys.
func (e *accountEntity) keys(number uint64) (hashKey [16]byte, secretHash [32]byte, err error) {
	if len(e.HashKey) != 32 {
		return hashKey, secretHash, fmt.Errorf("account %d: hash_key is not 16 bytes in hexadecimal", number)
	}
	if _, err := hex.Decode(hashKey[:], []byte(e.HashKey)); err != nil {
		return hashKey, secretHash, fmt.Errorf("account %d: hash_key is not 16 bytes in hexadecimal", number)
	}
	if len(e.SecretHash) != 64 {
		return hashKey, secretHash, fmt.Errorf("account %d: secret_hash is not 32 bytes in hexadecimal", number)
	}
	if _, err := hex.Decode(secretHash[:], []byte(e.SecretHash)); err != nil {
		return hashKey, secretHash, fmt.Errorf("account %d: secret_hash is not 32 bytes in hexadecimal", number)
	}
	return hashKey, secretHash, nil
}

// install takes over the account's entity, or changes nothing.
func (a *account) install(e accountEntity) error {
	hashKey, secretHash, err := e.keys(a.number)
	if err != nil {
		return err
	}
	a.secretHash, a.accountEntity = secretHash, e
	a.Settings.fill()
	a.types.SetSketches(e.HasCatalog)
	a.pacing.Configure(a.Settings.SendingLimits)
	a.profiles.Configure(hashKey, a.Settings.Placeholders, a.Settings.IdentifierCap)
	return nil
}

// keysFromMs is the log time after which idempotency keys count at logTime.
func (a *account) keysFromMs(logTime int64) int64 {
	return max(a.ForgottenMs, logTime-a.Settings.idempotencyMs())
}

// name is how the store names the account.
func (a *account) name() state.Account { return state.Account{Number: a.number, Index: a.index} }

// APIKeyPrefix begins every API key.
const APIKeyPrefix = "svc_live_"

// AppID is an account's public identifier on Surface B.
func AppID(account uint64) string { return fmt.Sprintf("app_%016x", account) }

// AccountID is an account's identifier.
func AccountID(account uint64) string { return fmt.Sprintf("acc_%016x", account) }

// ParseAppID reads the account's number out of an App ID.
func ParseAppID(appID []byte) (account uint64, ok bool) {
	const prefix = "app_"
	if len(appID) != len(prefix)+16 || string(appID[:len(prefix)]) != prefix {
		return 0, false
	}
	for _, c := range appID[len(prefix):] {
		switch {
		case '0' <= c && c <= '9':
			account = account<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			account = account<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return account, true
}
