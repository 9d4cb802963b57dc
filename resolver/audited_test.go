package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/redact"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sources"
)

// notAudited are the commands that are no change of what an account is set up to do,
// with the reason.
var notAudited = map[string]string{
	access.CommandSessionCreate: "signing in", access.CommandSessionDelete: "signing out", access.CommandAPIKeysUsed: "use of keys", sources.CommandUsed: "use of keys", eventtypes.CommandName: "what was seen", forms.CommandViewed: "what was seen",

	// People and their data: each profile's timeline has what became of it.
	contacts.CommandListAdd: "people", identrules.CommandListAdd1: "people", contacts.CommandListRemove: "people",
	contacts.CommandCreate: "people", identrules.CommandContactCreate1: "people", contacts.CommandUpdate: "people", CommandContactErase: "people",
	contacts.CommandConsentSet: "people", contacts.CommandSuppressionSet: "people", conversations.CommandOpen: "people", messages.CommandEngagement: "people", messages.CommandPreferences: "people", forms.CommandSubmit: "people", forms.CommandConfirm: "people", inapp.CommandMark: "people",
	contacts.CommandDeviceAdd: "people", contacts.CommandDeviceRemove: "people", messages.CommandTextAnswer: "people", automation.CommandTrigger: "people", messages.CommandEmailSend: "people", messages.CommandEmailSend1: "people", messages.CommandEmailSend2: "people",

	// What the service itself continues with.
	erasure.CommandDone: "service", redact.CommandRefused: "service", campaigns.CommandBatch: "service", campaigns.CommandResult: "service",
	campaigns.CommandFinish: "service", campaigns.CommandResume: "service", messages.CommandOutboxDone: "service", CommandOutboxClaim: "service",

	// What is sent again, or for a trial.
	outbox.CommandWebhookTest: "deliveries", outbox.CommandWebhookReplay: "deliveries",

	// As logs of before the audit log have them.
	campaigns.CommandSave1: "old", campaigns.CommandStart1: "old", campaigns.CommandResult1: "old", messages.CommandEngagement1: "old", messages.CommandOutboxDone1: "old",
}

// TestEveryCommandIsAuditedOrNot: a command is in the audit log, or here with the
// reason why not.
func TestEveryCommandIsAuditedOrNot(t *testing.T) {
	t.Parallel()
	for name := range commandTable {
		_, audited := auditedCommands[name]
		if reason := notAudited[name]; audited == (reason != "") {
			t.Errorf("%s: audited is %v, and the reason why not is %q", name, audited, reason)
		}
	}
	for name := range auditedCommands {
		if commandTable[name] == nil {
			t.Errorf("%s is audited, and no command of an account", name)
		}
	}
	for name := range notAudited {
		if commandTable[name] == nil {
			t.Errorf("%s is no command of an account", name)
		}
	}
}

// signed is a command's arguments with who made it, as Node.CommandBy of package node writes them.
func signed(args any, id string) json.RawMessage {
	b := must.JSON(args)
	return json.RawMessage(string(b[:len(b)-1]) + `,"_by":{"kind":"user","id":"` + id + `","keeps":true}}`)
}

func (r *recorder) versions(kind, id string) []audit.Version {
	r.t.Helper()
	list, err := r.view().Audit().Versions(kind, id, 0, 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// TestAuditLogSurvives: the audit log and the versions are part of the state, of its
// hash and of checkpoints (R1).
func TestAuditLogSurvives(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	tpl := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, signed(campaigns.Template{Name: "T", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>one"}, "usr_1"))).ID
	r.must(campaigns.CommandTemplateSave, signed(campaigns.Template{ID: tpl, Name: "T", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>two"}, "usr_2"))
	r.must(contacts.CommandListCreate, by(contacts.ListSave{Name: "l"}, "usr_1"))
	before, err := r.view().Audit().Changes("", "", 0, 10)
	if err != nil || len(before) != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	d.reload()
	after, err := r.view().Audit().Changes("", "", 0, 10)
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Fatalf("before the restart %+v\nafter it %+v, %v", before, after, err)
	}
	if list := r.versions("template", tpl); len(list) != 2 || !strings.Contains(string(list[0].Content), "two") || !strings.Contains(string(list[1].Content), "one") || list[0].By.ID != "usr_2" {
		t.Errorf("%+v", list)
	}
	// The log continues after the restart, behind what it has.
	r.must(contacts.CommandListCreate, by(contacts.ListSave{Name: "m"}, "usr_1"))
	if list, err := r.view().Audit().Changes("list", "", 0, 1); err != nil || list[0].Seq != 4 {
		t.Errorf("%+v, %v", list, err)
	}
	// Each change and each content counts in the hash.
	hash := hashOf(t, d.m)
	first := string([]byte{0, 0, 0, 0, 0, 0, 0, 1})
	for _, key := range []string{state.EntityKey(testAccount, state.EntityChange, first), state.TextKey(testAccount, '|', first)} {
		was, err := r.m.store.Entity(key)
		if err != nil || len(was) == 0 {
			t.Fatalf("%q, %v", was, err)
		}
		r.m.store.PutPayload(key, bytes.Replace(was, []byte("T"), []byte("U"), 1))
		if hashOf(t, d.m) == hash {
			t.Errorf("the hash does not see another %q", was)
		}
		r.m.store.PutPayload(key, was)
	}
	if hashOf(t, d.m) != hash {
		t.Error("the hash is not what it was")
	}
}

// TestVersionsAreBounded: contents of flows, templates and settings are kept, the newest
// that there is room for, through checkpoints; their changes stay in the audit log.
func TestVersionsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	flow := answer[automation.Flow](t, r.must(automation.CommandCreate, signed(automation.Save{Definition: []byte(`{"name":"one"}`)}, "usr_1"))).ID
	r.must(automation.CommandUpdate, signed(automation.Save{ID: flow, Definition: []byte(`{"name":"two"}`)}, "usr_1"))
	r.must(automation.CommandUpdate, by(automation.Save{ID: flow, Definition: []byte(`{"name":"as older logs have it"}`)}, "usr_1"))
	if list := r.versions("flow", flow); len(list) != 2 || !strings.Contains(string(list[0].Content), `"two"`) || !strings.Contains(string(list[1].Content), `"one"`) || list[1].Action != "flow.create" {
		t.Fatalf("%+v", list)
	}
	settings := DefaultSettings()
	settings.IdentifierCap = 77
	r.must(CommandSettingsSet, signed(settings, "usr_1"))
	if list := r.versions("settings", ""); len(list) != 1 || !strings.Contains(string(list[0].Content), `"identifier_cap":77`) {
		t.Fatalf("%+v", list)
	}
	text := strings.Repeat("x", audit.MaxContent-500)
	tpl := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, signed(campaigns.Template{Name: "T", Source: campaigns.TemplateList, Subject: "s", HTML: text}, "usr_1"))).ID
	for range audit.MaxContentBytes/audit.MaxContent + 5 {
		r.must(campaigns.CommandTemplateSave, signed(campaigns.Template{ID: tpl, Name: "T", Source: campaigns.TemplateList, Subject: "s", HTML: text}, "usr_1"))
	}
	contents := func() (bytes int) {
		for kind, id := range map[string]string{"template": tpl, "flow": flow, "settings": ""} {
			for _, x := range r.versions(kind, id) {
				bytes += len(x.Content)
			}
		}
		return bytes
	}
	if n := contents(); n > audit.MaxContentBytes || n < audit.MaxContentBytes-audit.MaxContent {
		t.Fatalf("contents of %d bytes", n)
	}
	r.must(campaigns.CommandTemplateSave, signed(campaigns.Template{ID: tpl, Name: "T", Source: campaigns.TemplateList, Subject: "s", HTML: text + text}, "usr_1"))
	kept := func() (n int) {
		for _, x := range r.versions("template", tpl) {
			if x.Content != nil {
				n++
			}
		}
		return n
	}
	want := kept()
	if list := r.versions("template", tpl); len(list) != audit.MaxContentBytes/audit.MaxContent+7 || list[0].Content != nil || list[1].Content == nil || want < 30 || want > 33 {
		t.Fatalf("%d versions, %d of them with their content", len(list), want)
	}
	if list := r.versions("flow", flow); len(list) != 2 || list[0].Content != nil || list[0].Name != "two" {
		t.Errorf("%+v", list)
	}
	d.reload()
	if got := kept(); got != want || contents() > audit.MaxContentBytes {
		t.Errorf("%d contents of %d bytes after a restart, before it %d", got, contents(), want)
	}
	// With the change its content goes.
	for i := range audit.MaxChanges {
		r.must(contacts.CommandListCreate, by(contacts.ListSave{Name: fmt.Sprint(i)}, "usr_1"))
		if i%500 == 0 {
			d.reload()
		}
	}
	n := 0
	d.reload()
	if err := r.m.store.Each(state.TableText, func(_ uint64, rest, _ []byte) error {
		if rest[0] == '|' {
			n++
		}
		return nil
	}); err != nil || n != 0 || contents() != 0 {
		t.Errorf("%d contents of %d bytes are left, %v", n, contents(), err)
	}
}
