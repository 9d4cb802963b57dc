package resolver

import (
	"encoding/json"
	"maps"
	"slices"

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
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sources"
)

// auditedCommands says what commands change. What is saved under one name, so that the action
// is "", is created or updated.
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
	inapp.CommandConfigure: {"settings", "in_app.update"}, inapp.CommandRotate: {"settings", "in_app_secret.rotate"},
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
