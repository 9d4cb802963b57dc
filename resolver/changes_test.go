package resolver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/state"
)

// by is a command's arguments with who made it.
func by(args any, id string) json.RawMessage {
	b := must.JSON(args)
	return json.RawMessage(string(b[:len(b)-1]) + `,"_by":{"kind":"user","id":"` + id + `"}}`)
}

// audited is the whole audit log, the newest change first.
func (r *recorder) audited() []audit.Change {
	r.t.Helper()
	list, err := r.view().Audit().Changes("", "", 0, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// TestAuditLogIsBounded: the oldest changes go, by number and by the bytes of
// definitions, and what is refused or unsigned is not in it.
func TestAuditLogIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.must(contacts.CommandListCreate, contacts.ListSave{Name: "unsigned"})
	r.refuses("name", contacts.CommandListCreate, by(contacts.ListSave{}, "usr_1"))
	if list := r.audited(); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	id := answer[contacts.List](t, r.must(contacts.CommandListCreate, by(contacts.ListSave{Name: "l"}, "usr_1"))).ID
	for i := range audit.MaxChanges + 3 {
		r.must(contacts.CommandListUpdate, by(contacts.ListSave{ID: id, Name: fmt.Sprint(i)}, "usr_1"))
	}
	list, err := r.view().Audit().Changes("list", id, 0, 1)
	all := r.audited()
	if err != nil || len(all) != audit.MaxChanges || all[len(all)-1].Seq != 5 || list[0].Seq != audit.MaxChanges+4 || list[0].Name != fmt.Sprint(audit.MaxChanges+2) {
		t.Fatalf("%d changes from %d, %+v, %v", len(all), all[len(all)-1].Seq, list, err)
	}
	n := 0
	for k, b := range r.m.store.Entities {
		if k[state.KeyHead] == state.EntityChange && b != nil {
			n++
		}
	}
	if n != audit.MaxChanges {
		t.Fatalf("%d changes are stored", n)
	}
	// Definitions are bounded together.
	var conditions []string
	for i := range 20 {
		conditions = append(conditions, fmt.Sprintf(`{"kind":"activity","event":"e%d","where":[{"property":"p","op":"=","value":"%s"}]}`, i, strings.Repeat("x", 900)))
	}
	def := `{"match":"all","conditions":[` + strings.Join(conditions, ",") + `]}`
	out := r.command(CommandSegmentCreate, by(SegmentSave{Name: "s", Definition: json.RawMessage(def)}, "usr_1"))
	if out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	seg := answer[struct{ ID string }](t, out).ID
	for i := range 300 {
		r.must(CommandSegmentUpdate, by(SegmentSave{ID: seg, Name: fmt.Sprint(i), Definition: json.RawMessage(def)}, "usr_1"))
	}
	bytes := 0
	for _, c := range r.audited() {
		bytes += len(c.Definition)
	}
	if bytes > audit.MaxDefinitionBytes || bytes < audit.MaxDefinitionBytes/2 {
		t.Fatalf("definitions of %d bytes", bytes)
	}
}
