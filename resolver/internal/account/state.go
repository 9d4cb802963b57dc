package account

import (
	"encoding/hex"
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
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/signup"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/segment/engine"
)

// Company owns accounts and users.
type Company struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Entity is the part of an account that is stored as one entity.
type Entity struct {
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
	// HasOrders says that clicks and opens are noted for the attribution of orders: since the
	// account was made, or since its first events under rules that know of orders.
	HasOrders bool `json:"orders,omitempty"`
}

// State is the state of one account. The machine alone changes it, while it applies a
// record; readers have it through a view, while the machine is held still.
type State struct {
	Number uint64
	Index  uint32 // dense number in this process, part of cache keys
	// Tallied is what the machine's totals have of the account.
	Tallied Totals
	// Entity is changed by [State.Install], which keeps what follows from it in step.
	Entity
	SecretSum [32]byte // SHA-256 of the App Secret

	Profiles *resolution.State
	Engine   *engine.Engine
	Segments map[string]*Segment
	Imports  map[[32]byte]uint64 // file → first row that is missing
	Sets     *profile.OrdinalSets
	Sending  *sending.State
	Signup   *signup.State
	Features
}

// Features are the parts of the account that are packages of their own. None is nil once
// the machine has registered them.
type Features struct {
	// Who works in the account, and what they did.
	Access *access.State // users, sessions and API keys
	Audit  *audit.State

	// How events come in, and how messages go out.
	Sources     *sources.State     // write keys
	Domains     *domains.State     // of senders
	Credentials *credentials.State // of providers
	Types       *eventtypes.State  // the event catalog

	// What is known of profiles beside their documents.
	Contacts   *contacts.State // lists, too
	ConsentLog *consentlog.State
	Forms      *forms.State
	Orders     *orders.State
	Erasure    *erasure.State

	// Messages, from the rule that makes one to what became of it.
	Campaigns     *campaigns.State
	Flows         *automation.State
	Pacing        *pacing.State // how many messages a profile may get
	Outbox        *outbox.State // messages and webhooks that are to be sent
	InApp         *inapp.State  // the inboxes of profiles
	Conversations *conversations.State

	registered
}

// New makes an account without events, and without the features that need the machine.
func New(number uint64, index uint32) *State {
	a := &State{
		Number:   number,
		Index:    index,
		Engine:   engine.New(),
		Segments: map[string]*Segment{},
		Imports:  map[[32]byte]uint64{},
		Sets:     profile.NewOrdinalSets(),
		Features: Features{
			Access: access.New(), Domains: domains.New(), Credentials: credentials.New(),
			Sources: sources.New(),
		},
	}
	a.Erasure = erasure.New(number, func() identifier.Hasher { return a.Profiles.Hasher })
	return a
}

// Keys reads the account's keys.
func (e *Entity) Keys(number uint64) (hashKey [16]byte, secretHash [32]byte, err error) {
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

// Install takes over the account's entity, or changes nothing.
func (a *State) Install(e Entity) error {
	hashKey, secretHash, err := e.Keys(a.Number)
	if err != nil {
		return err
	}
	a.SecretSum, a.Entity = secretHash, e
	a.Settings.Fill()
	a.Types.SetSketches(e.HasCatalog)
	a.Pacing.Configure(a.Settings.SendingLimits)
	a.Orders.Configure(a.Settings.Attribution)
	a.Profiles.Configure(hashKey, a.Settings.Placeholders, a.Settings.IdentifierCap)
	return nil
}

// KeysFromMs is the log time after which idempotency keys count at logTime.
func (a *State) KeysFromMs(logTime int64) int64 {
	return max(a.ForgottenMs, logTime-a.Settings.IdempotencyMs())
}

// Name is how the store names the account.
func (a *State) Name() state.Account { return state.Account{Number: a.Number, Index: a.Index} }
