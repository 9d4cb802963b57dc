package resolver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sources"
)

// The audit log says who changed what of an account, and when. A command says who made
// it in the field "_by" of its arguments, which the state machine does not look at
// otherwise; commands without it, as those of older logs, are not in the audit log. No
// values are kept but definitions of segments, and contents (see change_contents.go):
// the versions of what was changed.

// The bounds of the audit log of an account. The oldest changes are dropped.
const (
	maxChanges     = 2000
	maxChangeBytes = 4 << 20 // of definitions together
	// maxChangeDefinition is the longest definition that is kept.
	maxChangeDefinition = 64 << 10
	maxChangeFields     = 50
)

// The kinds of authors of changes.
const (
	ByUser = "user"
	ByKey  = "key"
)

// ChangedBy is the author of a change.
type ChangedBy struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Change is one entry of the audit log.
type Change struct {
	Seq    uint64    `json:"seq"` // from 1
	AtMs   int64     `json:"at_ms"`
	By     ChangedBy `json:"by"`
	Action string    `json:"action"` // such as segment.update
	Kind   string    `json:"kind"`   // of what was changed
	ID     string    `json:"id,omitempty"`
	Name   string    `json:"name,omitempty"`
	// Fields are the names of what was set; of segments and settings those that are
	// other than before.
	Fields []string `json:"fields,omitempty"`
	// Definition is a segment's as of the change; empty for one that is too long.
	Definition json.RawMessage `json:"definition,omitempty"`
	// ContentBytes is the length of what it is then, of a flow, template or settings; 0
	// where the command does not say that it is kept, as in older logs.
	ContentBytes int `json:"content_bytes,omitempty"`

	// keeps says that the content is to be kept.
	keeps bool
}

// changeLine is what is in memory of a change.
type changeLine struct {
	seq      uint64
	kind, id string
	bytes    int // of the definition
	content  int // bytes of the content, 0 for none that is kept
	// version says that there was a content.
	version bool
}

// changeLog is the audit log of an account.
type changeLog struct {
	lines    []changeLine // in order
	bytes    int          // of definitions
	contents int          // bytes of contents that are kept
}

// auditedCommands says what commands change. What is saved under one name is created or
// updated.
var auditedCommands = map[string]struct{ kind, action string }{
	CommandSegmentCreate: {"segment", "segment.create"}, CommandSegmentUpdate: {"segment", "segment.update"}, CommandSegmentDelete: {"segment", "segment.delete"},
	automation.CommandCreate: {"flow", "flow.create"}, automation.CommandUpdate: {"flow", "flow.update"}, automation.CommandDelete: {"flow", "flow.delete"}, automation.CommandDuplicate: {"flow", "flow.duplicate"},
	automation.CommandPublish: {"flow", "flow.publish"}, automation.CommandPause: {"flow", "flow.pause"}, automation.CommandResume: {"flow", "flow.resume"}, automation.CommandToggle: {"flow", "flow.toggle"},
	campaigns.CommandTemplateSave: {"template", ""}, campaigns.CommandTemplateDelete: {"template", "template.delete"},
	campaigns.CommandSave: {"campaign", ""}, campaigns.CommandDelete: {"campaign", "campaign.delete"}, campaigns.CommandStart: {"campaign", "campaign.start"},
	campaigns.CommandUnschedule: {"campaign", "campaign.unschedule"},
	CommandListCreate:           {"list", "list.create"}, CommandListUpdate: {"list", "list.update"}, CommandListDelete: {"list", "list.delete"},
	CommandSettingsSet: {"settings", "settings.update"}, CommandAppSecretSet: {"settings", "app_secret.update"},
	domains.CommandAdd: {"sender_domain", "sender_domain.create"}, domains.CommandVerify: {"sender_domain", "sender_domain.verify"}, domains.CommandDelete: {"sender_domain", "sender_domain.delete"},
	outbox.CommandWebhookCreate: {"webhook", "webhook.create"}, outbox.CommandWebhookUpdate: {"webhook", "webhook.update"}, outbox.CommandWebhookDelete: {"webhook", "webhook.delete"}, outbox.CommandWebhookRotate: {"webhook", "webhook.rotate"},
	credentials.CommandSet: {"credential", "credential.update"}, credentials.CommandDelete: {"credential", "credential.delete"},
	access.CommandAPIKeyCreate: {"api_key", "api_key.create"}, access.CommandAPIKeyRevoke: {"api_key", "api_key.revoke"},
	sources.CommandCreate: {"source", "source.create"}, sources.CommandUpdate: {"source", "source.update"}, sources.CommandDelete: {"source", "source.delete"},
	sources.CommandKeyCreate: {"source", "source.key.create"}, sources.CommandKeyRevoke: {"source", "source.key.revoke"},
	CommandCatalogDefine: {"event_type", "event_type.define"}, CommandCatalogUpdate: {"event_type", "event_type.update"}, CommandErasureLift: {"erasure", "erasure.lift"},
	CommandCompanyUpdate: {"company", "company.update"}, CommandCreditsAdd: {"company", "company.credits"},
	access.CommandUserCreate: {"user", "user.create"}, access.CommandUserUpdate: {"user", "user.update"}, access.CommandUserDelete: {"user", "user.delete"}, access.CommandPasswordSet: {"user", "user.password"},
}

// ChangeKinds lists the kinds of what changes are kept of.
func ChangeKinds() []string {
	kinds := map[string]bool{}
	for _, c := range auditedCommands {
		kinds[c.kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// byField is the field of a command's arguments that says who made it.
const byField = `"_by":`

// signature is what the field "_by" has.
type signature struct {
	ChangedBy
	// Keeps says that the content of what is changed is kept.
	Keeps bool `json:"keeps,omitempty"`
}

// SignCommand adds the author to the arguments of a command, for the audit log. It is
// nil for one that is not audited.
func SignCommand(name string, args any, by ChangedBy) json.RawMessage {
	if _, audited := auditedCommands[name]; !audited || by.ID == "" {
		return nil
	}
	b := must.JSON(args)
	if len(b) < 2 || b[len(b)-1] != '}' {
		return nil
	}
	b = b[:len(b)-1]
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(append(b, byField...), must.JSON(signature{by, true})...)
	return append(b, '}')
}

// beginChange reads who makes a command and what it is about, before it is applied. It
// is nil for one that is not audited.
func (m *Machine) beginChange(a *account, name string, args []byte) *Change {
	what, audited := auditedCommands[name]
	if !audited || !bytes.Contains(args, []byte(byField)) {
		return nil
	}
	var in struct {
		By    *signature `json:"_by"`
		ID    string     `json:"id"`
		Name  string     `json:"name"`
		Group string     `json:"group"`
	}
	// Fields of other types are not read: what they are is the command's to judge.
	if err := json.Unmarshal(args, &in); in.By == nil || in.By.ID == "" && err != nil {
		return nil
	}
	c := &Change{By: in.By.ChangedBy, keeps: in.By.Keeps, Action: what.action, Kind: what.kind, ID: in.ID, Name: in.Name}
	switch what.kind {
	case "sender_domain":
		c.ID = in.Name
	case "credential":
		c.ID = in.Group + "/" + in.Name
	}
	old := a.nameOf(what.kind, in.ID)
	if c.Name == "" {
		c.Name = old
	}
	if c.Action == "" {
		c.Action = what.kind + ".update"
		if in.ID == "" {
			c.Action = what.kind + ".create"
		}
	}
	c.Fields = a.changedFields(name, c.ID, args)
	return c
}

// profile.NameOf is how something is named at present, "" for nothing.
func (a *account) nameOf(kind, id string) string {
	switch kind {
	case "segment":
		if s := a.segments[id]; s != nil {
			return s.Name
		}
	case "flow":
		if _, def := a.flows.Get(id); def != nil {
			return def.Name
		}
	case "template":
		t, _ := a.campaigns.Template(id)
		return t.Name
	case "campaign":
		c, _ := a.campaigns.Campaign(id)
		return c.Name
	case "list":
		if l := a.list(id); l != nil {
			return l.Name
		}
	case "user":
		u, _ := a.access.User(id)
		return u.Name
	case "api_key":
		k, _ := a.access.APIKey(id)
		return k.Name
	case "source":
		s, _ := a.sources.Get(id)
		return s.Name
	case "company":
		return a.Company.Name
	}
	return ""
}

// unnamedFields are arguments that are not the caller's, or say what is named already.
var unnamedFields = []string{"_by", "id", "actor_id", "group", "created_ms", "updated_ms", "text_bytes", "number", "hash", "if_version"}

// changedFields names what a command sets.
func (a *account) changedFields(name, id string, args []byte) []string {
	var now, old map[string]json.RawMessage
	if json.Unmarshal(args, &now) != nil {
		return nil
	}
	switch name {
	case CommandSettingsSet:
		var s Settings
		if json.Unmarshal(args, &s) != nil {
			return nil
		}
		s.fill()
		clear(now)
		_, _ = json.Unmarshal(must.JSON(s.Shown()), &now), json.Unmarshal(must.JSON(a.Settings.Shown()), &old)
		for k := range old {
			if _, given := now[k]; !given {
				now[k] = nil
			}
		}
	case CommandSegmentUpdate:
		if s := a.segments[id]; s != nil {
			old = map[string]json.RawMessage{"name": must.JSON(s.Name)} // definitions are compared once they are canonical
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if slices.Contains(unnamedFields, k) || old != nil && bytes.Equal(now[k], old[k]) || len(out) == maxChangeFields {
			continue
		}
		out = append(out, strings.TrimSuffix(k, "_hash"))
	}
	return out
}

// noteChange adds a change that was made to the audit log.
func (m *Machine) noteChange(a *account, c *Change, before []byte, reply []byte) {
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	switch err := json.Unmarshal(reply, &made); {
	case err != nil:
	case c.Kind == "event_type":
		c.ID = made.Key
	case c.Kind != "company" && made.ID != "":
		c.ID = made.ID
	}
	// A flow's name is in its definition; older logs have the one of before.
	if name := a.nameOf(c.Kind, c.ID); c.Name == "" || c.keeps && name != "" {
		c.Name = name
	}
	if s := a.segments[c.ID]; c.Kind == "segment" && s != nil {
		if bytes.Equal(before, s.Definition) {
			c.Fields = slices.DeleteFunc(c.Fields, func(f string) bool { return f == "definition" })
		}
		if len(s.Definition) <= maxChangeDefinition {
			c.Definition = s.Definition
		}
	}
	c.Seq, c.AtMs = 1, m.logTime
	g := &a.changes
	if n := len(g.lines); n > 0 {
		c.Seq = g.lines[n-1].seq + 1
	}
	if c.keeps {
		m.keepContent(a, c, a.contentOf(c, reply))
	}
	m.store.PutEntity(changeKey(a.number, c.Seq), must.JSON(c))
	g.add(c)
	drop := func(seq uint64) { m.store.PutEntity(changeContentKey(a.number, seq), nil) }
	g.dropContents(drop)
	for len(g.lines) > 1 && (len(g.lines) > maxChanges || g.bytes > maxChangeBytes) {
		g.dropContent(0, drop)
		m.store.PutEntity(changeKey(a.number, g.lines[0].seq), nil)
		g.bytes -= g.lines[0].bytes
		g.lines = g.lines[1:]
	}
}

func (g *changeLog) add(c *Change) {
	content := c.keptContent()
	g.lines = append(g.lines, changeLine{c.Seq, c.Kind, c.ID, len(c.Definition), content, c.ContentBytes > 0})
	g.bytes += len(c.Definition)
	g.contents += content
}

// segmentDefinition is a segment's definition, nil if there is no such segment.
func (a *account) segmentDefinition(id string) []byte {
	if s := a.segments[id]; s != nil {
		return s.Definition
	}
	return nil
}

func changeKey(account, seq uint64) string {
	return state.EntityKey(account, state.EntityChange, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// loadChange reads a change; they come in order.
func (a *account) loadChange(value []byte) error {
	var c Change
	if err := json.Unmarshal(value, &c); err != nil {
		return err
	}
	c.ID = strings.Clone(c.ID)
	a.changes.add(&c)
	a.changes.dropContents(func(uint64) {}) // they are not in the store any more
	return nil
}

// change reads one from the store.
func (m *Machine) change(a *account, seq uint64) (c Change, err error) {
	b, err := m.store.Entity(changeKey(a.number, seq))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(b, &c)
}

// hashChanges is the part of the audit log in the state's hash.
func (m *Machine) hashChanges(put func([]byte), a *account) error {
	for _, x := range a.changes.lines {
		c, err := m.change(a, x.seq)
		if err != nil {
			return err
		}
		put(must.JSON(c))
	}
	return m.hashContents(put, a)
}

// Changes lists the audit log, the newest first: of a kind and of an id, "" for any,
// before a number, 0 for the end, limit at most.
func (v *View) Changes(kind, id string, before uint64, limit int) ([]Change, error) {
	var out []Change
	for _, x := range slices.Backward(v.a.changes.lines) {
		if len(out) >= limit {
			break
		}
		if kind != "" && x.kind != kind || id != "" && x.id != id || before != 0 && x.seq >= before {
			continue
		}
		c, err := v.m.change(v.a, x.seq)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ChangerName returns the present name of a user or an API key, the e-mail of a user
// without a name, "" for one that was deleted.
func (v *View) ChangerName(by ChangedBy) string {
	if by.Kind == ByKey {
		return v.a.nameOf("api_key", by.ID)
	}
	if u, ok := v.a.access.User(by.ID); ok && u.Name == "" {
		return u.Email
	}
	return v.a.nameOf("user", by.ID)
}
