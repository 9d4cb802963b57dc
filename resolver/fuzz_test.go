package resolver

import (
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/eventtypes"
)

// FuzzApply feeds arbitrary record bodies to the machine: it may refuse them,
// never panic (L3).
func FuzzApply(f *testing.F) {
	f.Add(uint8(eventlog.KindEvents), appendEvents(nil, []eventlog.Event{ev("email", "a@x.io", "attributes", `{"a":1}`)}))
	f.Add(uint8(eventlog.KindImport), appendEvents((&eventlog.ImportHead{Rows: 1}).Append(nil), []eventlog.Event{ev("phone", "1")}))
	f.Add(uint8(eventlog.KindCommand), eventlog.AppendCommand(nil, eventtypes.CommandDefine, []byte(`{"name":"X"}`)))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		r := newRecorder(t, DefaultSettings())
		env := r.envelope(eventlog.Kind(kind))
		var rows query.Batch
		_ = r.m.Apply(r.m.next, append(env.Append(nil), body...), &rows, &r.out)
	})
}
