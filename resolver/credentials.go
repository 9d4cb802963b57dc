package resolver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of credentials.
const (
	CommandCredentialSet    = "credential.set"
	CommandCredentialDelete = "credential.delete"
)

// The groups of credentials.
const (
	CredentialPush    = "push"    // to push services
	CredentialMessage = "message" // to providers of SMS and the like
	CredentialInbound = "inbound" // by which providers prove themselves to us
)

// credentialNames are what each group has credentials for.
var credentialNames = map[string][]string{
	CredentialPush:    profile.DeviceKinds,
	CredentialMessage: {"sms", "whatsapp", "im"},
	CredentialInbound: {"generic", "mail", "mailgun", "postmark", "sendgrid", "ses"},
}

const maxCredentialBytes = 64 << 10

// Credential is an account's key to another service, or another service's to
// the account. It has to be used, so it is in the state as it is; it is never
// logged nor answered.
type Credential struct {
	Group     string          `json:"group"`
	Name      string          `json:"name"`
	Config    json.RawMessage `json:"config,omitempty"`
	UpdatedMs int64           `json:"updated_ms,omitempty"`
}

// CredentialNames lists what a group has credentials for, nil for no group.
func CredentialNames(group string) []string { return slices.Clone(credentialNames[group]) }

// String hides what is secret.
func (c Credential) String() string { return "credential " + c.Group + "/" + c.Name }

// GoString hides what is secret from %#v.
func (c Credential) GoString() string { return c.String() }

func checkCredential(c *Credential) *Refusal {
	names := credentialNames[c.Group]
	switch {
	case names == nil:
		return invalid("group", "group Input should be push, message or inbound")
	case !slices.Contains(names, c.Name):
		return notFound("name", "there is no %s provider %q; it is one of %s", c.Group, c.Name, strings.Join(names, ", "))
	}
	return nil
}

func (m *Machine) setCredential(cmd *command, c Credential) *Refusal {
	if r := checkCredential(&c); r != nil {
		return r
	}
	if len(c.Config) > maxCredentialBytes || !json.Valid(c.Config) {
		return invalid("config", "the credentials must be JSON of at most %d bytes", maxCredentialBytes)
	}
	c.UpdatedMs = m.logTime
	key := c.Group + "/" + c.Name
	cmd.account.credentials[key] = &c
	m.store.PutEntity(state.EntityKey(cmd.account.number, state.EntityCredential, key), entityJSON(c))
	return nil
}

func (m *Machine) deleteCredential(cmd *command, c Credential) *Refusal {
	if r := checkCredential(&c); r != nil {
		return r
	}
	key := c.Group + "/" + c.Name
	if cmd.account.credentials[key] == nil {
		return notFound("name", "no credentials are set for %s", c.Name)
	}
	delete(cmd.account.credentials, key)
	m.store.PutEntity(state.EntityKey(cmd.account.number, state.EntityCredential, key), nil)
	return nil
}

// Credential finds the credentials for one service. The config must not be
// changed.
func (v *View) Credential(group, name string) (Credential, bool) {
	if c := v.a.credentials[group+"/"+name]; c != nil {
		return *c, true
	}
	return Credential{}, false
}

// Credentials lists those of a group by name.
func (v *View) Credentials(group string) []Credential {
	var out []Credential
	for _, name := range credentialNames[group] {
		if c, ok := v.Credential(group, name); ok {
			out = append(out, c)
		}
	}
	return out
}
