package resolver

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sources"
)

// maxChangeFields bounds the names of fields that the audit log keeps of a change.
const maxChangeFields = 50

// auditedCommands says what commands change. What is saved under one name is created or
// updated.
var auditedCommands = map[string]struct{ kind, action string }{
	CommandSegmentCreate: {"segment", "segment.create"}, CommandSegmentUpdate: {"segment", "segment.update"}, CommandSegmentDelete: {"segment", "segment.delete"},
	automation.CommandCreate: {"flow", "flow.create"}, automation.CommandUpdate: {"flow", "flow.update"}, automation.CommandDelete: {"flow", "flow.delete"}, automation.CommandDuplicate: {"flow", "flow.duplicate"},
	automation.CommandPublish: {"flow", "flow.publish"}, automation.CommandPause: {"flow", "flow.pause"}, automation.CommandResume: {"flow", "flow.resume"}, automation.CommandToggle: {"flow", "flow.toggle"},
	campaigns.CommandTemplateSave: {"template", ""}, campaigns.CommandTemplateDelete: {"template", "template.delete"},
	campaigns.CommandSave: {"campaign", ""}, campaigns.CommandDelete: {"campaign", "campaign.delete"}, campaigns.CommandStart: {"campaign", "campaign.start"},
	campaigns.CommandUnschedule: {"campaign", "campaign.unschedule"},
	contacts.CommandListCreate:  {"list", "list.create"}, contacts.CommandListUpdate: {"list", "list.update"}, contacts.CommandListDelete: {"list", "list.delete"},
	CommandSettingsSet: {"settings", "settings.update"}, CommandAppSecretSet: {"settings", "app_secret.update"},
	domains.CommandAdd: {"sender_domain", "sender_domain.create"}, domains.CommandVerify: {"sender_domain", "sender_domain.verify"}, domains.CommandDelete: {"sender_domain", "sender_domain.delete"},
	outbox.CommandWebhookCreate: {"webhook", "webhook.create"}, outbox.CommandWebhookUpdate: {"webhook", "webhook.update"}, outbox.CommandWebhookDelete: {"webhook", "webhook.delete"}, outbox.CommandWebhookRotate: {"webhook", "webhook.rotate"},
	credentials.CommandSet: {"credential", "credential.update"}, credentials.CommandDelete: {"credential", "credential.delete"},
	access.CommandAPIKeyCreate: {"api_key", "api_key.create"}, access.CommandAPIKeyRevoke: {"api_key", "api_key.revoke"},
	sources.CommandCreate: {"source", "source.create"}, sources.CommandUpdate: {"source", "source.update"}, sources.CommandDelete: {"source", "source.delete"},
	sources.CommandKeyCreate: {"source", "source.key.create"}, sources.CommandKeyRevoke: {"source", "source.key.revoke"},
	forms.CommandCreate: {"form", "form.create"}, forms.CommandUpdate: {"form", "form.update"}, forms.CommandDelete: {"form", "form.delete"},
	eventtypes.CommandDefine: {"event_type", "event_type.define"}, eventtypes.CommandUpdate: {"event_type", "event_type.update"}, erasure.CommandLift: {"erasure", "erasure.lift"},
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

// SignCommand adds the author to the arguments of a command, for the audit log. It is
// nil for one that is not audited.
func SignCommand(name string, args any, by audit.Author) json.RawMessage {
	if _, audited := auditedCommands[name]; !audited || by.ID == "" {
		return nil
	}
	return audit.Sign(args, by)
}

// beginChange reads who makes a command and what it is about, before it is applied. It
// is nil for one that is not audited.
func (m *Machine) beginChange(a *account.State, name string, args []byte) *audit.Change {
	what, audited := auditedCommands[name]
	if !audited {
		return nil
	}
	in, ok := audit.ReadSigned(args)
	if !ok {
		return nil
	}
	c := &audit.Change{By: in.By, Keeps: in.Keeps, Action: what.action, Kind: what.kind, ID: in.ID, Name: in.Name}
	switch what.kind {
	case "sender_domain":
		c.ID = in.Name
	case "credential":
		c.ID = in.Group + "/" + in.Name
	}
	old := a.NameOf(what.kind, in.ID)
	if c.Name == "" {
		c.Name = old
	}
	if c.Action == "" {
		c.Action = what.kind + ".update"
		if in.ID == "" {
			c.Action = what.kind + ".create"
		}
	}
	c.Fields = changedFields(a, name, c.ID, args)
	return c
}

// unnamedFields are arguments that are not the caller's, or say what is named already.
var unnamedFields = []string{"_by", "id", "actor_id", "group", "created_ms", "updated_ms", "text_bytes", "number", "hash", "if_version"}

// changedFields names what a command sets.
func changedFields(a *account.State, name, id string, args []byte) []string {
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
		s.Fill()
		clear(now)
		_, _ = json.Unmarshal(must.JSON(s.Shown()), &now), json.Unmarshal(must.JSON(a.Settings.Shown()), &old)
		for k := range old {
			if _, given := now[k]; !given {
				now[k] = nil
			}
		}
	case CommandSegmentUpdate:
		if s := a.Segments[id]; s != nil {
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
func (m *Machine) noteChange(a *account.State, c *audit.Change, before []byte, reply []byte) {
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
	if name := a.NameOf(c.Kind, c.ID); c.Name == "" || c.Keeps && name != "" {
		c.Name = name
	}
	if s := a.Segments[c.ID]; c.Kind == "segment" && s != nil {
		if bytes.Equal(before, s.Definition) {
			c.Fields = slices.DeleteFunc(c.Fields, func(f string) bool { return f == "definition" })
		}
		c.Definition = s.Definition
	}
	var content []byte
	if c.Keeps {
		content = contentOf(a, c, reply)
	}
	a.Audit.Add(m.tx(a), c, content)
}

// segmentDefinition is a segment's definition, nil if there is no such segment.
func segmentDefinition(a *account.State, id string) []byte {
	if s := a.Segments[id]; s != nil {
		return s.Definition
	}
	return nil
}

// templateContent is what a template was.
type templateContent struct {
	Name          string `json:"name"`
	Source        string `json:"source"`
	Subject       string `json:"subject"`
	HTML          string `json:"html"`
	Text          string `json:"text"`
	Transactional bool   `json:"transactional"`
}

// contentOf is what a change made of something, nil for nothing whose contents are kept.
func contentOf(a *account.State, c *audit.Change, reply []byte) []byte {
	switch c.Action {
	case "flow.create", "flow.update", "flow.duplicate":
		if f, _ := a.Flows.Get(c.ID); f != nil {
			return f.Definition
		}
	case "template.create", "template.update":
		var t campaigns.Template // the account has it without its texts
		if json.Unmarshal(reply, &t) == nil {
			return must.JSON(templateContent{t.Name, t.Source, t.Subject, t.HTML, t.Text, t.Transactional})
		}
	case "settings.update":
		return must.JSON(a.Settings.Shown())
	}
	return nil
}
