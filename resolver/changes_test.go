package resolver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// by is a command's arguments with who made it.
func by(args any, id string) json.RawMessage {
	b := must.JSON(args)
	return json.RawMessage(string(b[:len(b)-1]) + `,"_by":{"kind":"user","id":"` + id + `"}}`)
}

// TestAuditLogIsBounded: the oldest changes go, by number and by the bytes of
// definitions, and what is refused or unsigned is not in it.
func TestAuditLogIsBounded(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	r.must(CommandListCreate, ListSave{Name: "unsigned"})
	r.refuses("name", CommandListCreate, by(ListSave{}, "usr_1"))
	if len(a.changes.lines) != 0 {
		t.Fatalf("%+v", a.changes.lines)
	}
	id := answer[List](t, r.must(CommandListCreate, by(ListSave{Name: "l"}, "usr_1"))).ID
	for i := range maxChanges + 3 {
		r.must(CommandListUpdate, by(ListSave{ID: id, Name: fmt.Sprint(i)}, "usr_1"))
	}
	list, err := r.view().Changes("list", id, 0, 1)
	if err != nil || len(a.changes.lines) != maxChanges || a.changes.lines[0].seq != 5 || list[0].Seq != maxChanges+4 || list[0].Name != fmt.Sprint(maxChanges+2) {
		t.Fatalf("%d changes from %d, %+v, %v", len(a.changes.lines), a.changes.lines[0].seq, list, err)
	}
	n := 0
	for k, b := range r.m.store.Entities {
		if k[state.KeyHead] == state.EntityChange && b != nil {
			n++
		}
	}
	if n != maxChanges {
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
	if a.changes.bytes > maxChangeBytes || a.changes.bytes < maxChangeBytes/2 {
		t.Fatalf("definitions of %d bytes", a.changes.bytes)
	}
}
