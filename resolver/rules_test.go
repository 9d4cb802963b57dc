package resolver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/profile"
)

func TestRefusedEventChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.events(ev("email", "a@x.io"))
	before, err := r.m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	big := fmt.Sprintf(`{"x":%q}`, strings.Repeat("y", profile.MaxObjectBytes))
	next := r.m.next
	for _, e := range []eventlog.Event{
		ev("external_id", "Guest "), ev("email", "none", "external_id", "undefined"), ev("phone", "call me"), ev(),
		ev("email", "a@x.io", "external_id", "new", "attributes", big, "key", "k"),
	} {
		o := r.events(e).Events[0]
		if o.Status != EventRefused || o.Refusal.Field == "" || !strings.HasPrefix(o.Refusal.Message, strings.Split(o.Refusal.Field, " ")[0]) {
			t.Fatalf("%s: %+v %v", describe(&e), o, o.Refusal)
		}
	}
	r.m.next = next
	r.m.records = dedup.NewRecords(recordWindow)
	r.m.records.Add(eventlog.RecordID{1})
	r.m.records.Add(eventlog.RecordID{2})
	after, err := r.m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Fatal("a refused event changed the state")
	}
}

// TestL3NewPlaceholdersAreWorkedOffInPieces: a settings change that touches
// many profiles continues in continue records of bounded work.
func TestL3NewPlaceholdersAreWorkedOffInPieces(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	s := DefaultSettings()
	for i := range 3 * continueWork {
		v := fmt.Sprintf("shared-%d", i)
		r.events(ev("external_id", v, "email", fmt.Sprintf("u%d@x.io", i)))
		s.Placeholders = append(s.Placeholders, v)
	}
	if out := r.command(CommandSettingsSet, s); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	a := r.m.accounts[testAccount]
	records := 0
	for r.m.Pending() > 0 {
		before := a.Profiles.Identifiers.Size()
		env := r.envelope(eventlog.KindContinue)
		r.apply(env.Append(nil))
		if done := before - a.Profiles.Identifiers.Size(); done > continueWork {
			t.Fatalf("one record worked off %d", done)
		}
		records++
	}
	if records != 3 || a.Profiles.Identifiers.Size() != 3*continueWork {
		t.Fatalf("%d records, %d identifiers left", records, a.Profiles.Identifiers.Size())
	}
	if o := r.events(ev("external_id", "shared-1")).Events[0]; o.Status != EventRefused {
		t.Fatal("a placeholder must be refused")
	}
}

func TestImportCursor(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	chunk := func(first uint64, n int) *Outcome {
		env := r.envelope(eventlog.KindImport)
		head := eventlog.ImportHead{File: [32]byte{9}, FirstRow: first, Rows: uint32(n)}
		var evs []eventlog.Event
		for range n {
			e := ev("external_id", "7")
			e.HasTime, e.TimeMs = true, 5
			evs = append(evs, e)
		}
		r.apply(appendEvents(head.Append(env.Append(nil)), evs))
		return &r.out
	}
	if out := chunk(0, 3); out.NextRow != 3 || out.Events[2].Status != EventAccepted {
		t.Fatalf("%+v", out)
	}
	if out := chunk(0, 3); out.NextRow != 3 || out.Events[2].Status != EventDuplicate {
		t.Fatalf("a repeat: %+v", out)
	}
	for _, first := range []uint64{2, 4} {
		if out := chunk(first, 3); out.Refusal == nil || out.NextRow != 3 {
			t.Fatalf("rows from %d: %+v", first, out)
		}
	}
	if chunk(3, 1); r.rows.Rows() != 4 {
		t.Fatalf("%d rows, want 4: identical rows are different events", r.rows.Rows())
	}
}

// TestImportRefusedRows (R1, L2): a row that was refused is tried again when it is sent
// again, and a stored one is not stored twice. Heads of earlier builds mean what they did.
func TestImportRefusedRows(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	// A time of 0 is a row that the decoder refused; one far in the future the state refuses.
	chunk := func(first uint64, times ...int64) *Outcome {
		env := r.envelope(eventlog.KindImport)
		head := eventlog.ImportHead{File: [32]byte{9}, FirstRow: first, Rows: uint32(len(times)), ListsRefused: true}
		var evs []eventlog.Event
		for i, ms := range times {
			if ms == 0 {
				head.Refused = append(head.Refused, uint32(i))
				continue
			}
			e := ev("external_id", "7")
			e.HasTime, e.TimeMs = true, ms
			evs = append(evs, e)
		}
		r.apply(appendEvents(head.Append(env.Append(nil)), evs))
		return &r.out
	}
	status := func(out *Outcome) (text string) {
		for _, e := range out.Events {
			text += string(" ADR"[e.Status])
		}
		return text
	}
	const late = 1 << 50
	if out := chunk(0, 5, 0, late, 5); out.NextRow != 4 || status(out) != "ARA" {
		t.Fatalf("first: %+v %s", out, status(out))
	}
	if out := chunk(0); out.NextRow != 4 || !slices.Equal(out.RefusedRows, []uint32{1, 2}) {
		t.Fatalf("what was refused: %+v", out)
	}
	if out := chunk(2); !slices.Equal(out.RefusedRows, []uint32{2}) {
		t.Fatalf("from row 2: %+v", out)
	}
	d.reload()
	if out := chunk(0, 5, 5, late, 5); out.NextRow != 4 || status(out) != "DARD" {
		t.Fatalf("again: %+v %s", out, status(out))
	}
	if out := chunk(1, 0, 5); out.NextRow != 4 || status(out) != "A" {
		t.Fatalf("a part of it: %+v %s", out, status(out))
	}
	if out := chunk(0, 5, 5, 5, 5); status(out) != "DDDD" || r.rows.Rows() != 4 {
		t.Fatalf("at last: %s, %d rows", status(out), r.rows.Rows())
	}
	if out := chunk(0); out.NextRow != 4 || len(out.RefusedRows) != 0 {
		t.Fatalf("nothing is refused any more: %+v", out)
	}
}

func TestSegmentCommands(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	save := func(id, def string) *Outcome {
		name := CommandSegmentCreate
		if id != "" {
			name = CommandSegmentUpdate
		}
		return r.command(name, SegmentSave{ID: id, Name: "S", Definition: json.RawMessage(def)})
	}
	var reply struct{ ID string }
	leaf := `{"match":"all","conditions":[{"kind":"activity","event":"viewed"}]}`
	if out := save("", leaf); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	if err := json.Unmarshal(r.out.Reply, &reply); err != nil {
		t.Fatal(err)
	}
	one := reply.ID
	ref := func(id string) string {
		return fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q}]}`, id)
	}
	if out := save("", ref(one)); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	if err := json.Unmarshal(r.out.Reply, &reply); err != nil {
		t.Fatal(err)
	}
	two := reply.ID
	for what, out := range map[string]string{
		"cycle":          save(one, ref(two)).message(),
		"self":           save(one, ref(one)).message(),
		"unknown ref":    save("", ref("seg_x")).message(),
		"bad definition": save("", `{"match":"all","conditions":[]}`).message(),
		"unknown id":     save("seg_x", leaf).message(),
		"used":           r.command(CommandSegmentDelete, SegmentDelete{one}).message(),
	} {
		if out == "" {
			t.Errorf("%s: must be refused", what)
		}
	}
	if m := r.command(CommandSegmentDelete, SegmentDelete{two}).message(); m != "" {
		t.Fatal(m)
	}
	if m := r.command(CommandSegmentDelete, SegmentDelete{one}).message(); m != "" {
		t.Fatal(m)
	}
}

func (o *Outcome) message() string {
	if o.Refusal == nil {
		return ""
	}
	return o.Refusal.Message
}

func TestApplyRefusesNewerRecords(t *testing.T) {
	t.Parallel()
	m := testMachine(t)
	var out Outcome
	var rows query.Batch
	env := eventlog.Envelope{Kind: eventlog.KindOutcome}
	if err := m.Apply(0, env.Append(nil), &rows, &out); err == nil {
		t.Fatal("a kind of record this build does not know must stop it")
	}
}

// TestR1CheckpointsDoNotShowInKeys: a key that had expired stays expired when
// keys hold longer later, whether or not a checkpoint has dropped it.
func TestR1CheckpointsDoNotShowInKeys(t *testing.T) {
	t.Parallel()
	var sums []string
	for _, checkpoints := range []bool{false, true} {
		r := newRecorder(t, DefaultSettings())
		maybe := func() {
			if checkpoints {
				checkpointInPlace(t, r.m)
			}
		}
		r.events(ev("email", "a@x.io", "key", "k"))
		maybe()
		r.now += 80 * 3_600_000
		r.events(ev("email", "a@x.io", "key", "other"))
		maybe()
		s := DefaultSettings()
		s.IdempotencyHours = 720
		r.command(CommandSettingsSet, s)
		r.now += 3_600_000
		if got := r.events(ev("email", "a@x.io", "key", "k")).Events[0].Status; got != EventAccepted {
			t.Fatalf("checkpoints %v: status %d", checkpoints, got)
		}
		if got := r.events(ev("email", "a@x.io", "key", "other")).Events[0].Status; got != EventDuplicate {
			t.Fatalf("checkpoints %v: a key that had not expired must hold, status %d", checkpoints, got)
		}
		sum, err := r.m.Hash()
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] {
		t.Fatal("R1: the state shows when checkpoints were written")
	}
}

func TestJunkIdentifiersAreRefused(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	for _, e := range []eventlog.Event{
		ev("external_id", "   "), ev("external_id", "\u00a0"), ev("external_id", "\u200b"), ev("email", " \u200b"),
		ev("phone", "0"), ev("phone", "+0"), ev("phone", "(0)"), ev("phone", "0-"),
	} {
		if o := r.events(e).Events[0]; o.Status != EventRefused {
			t.Errorf("%s: must be refused", describe(&e))
		}
	}
	if o := r.events(ev("external_id", "\u200bx")).Events[0]; o.Status != EventAccepted {
		t.Error("an external id is exact: what can be seen of it is kept as it is")
	}
}

// TestMergeOfManyKeys: objects with many keys are merged by an index.
func TestMergeOfManyKeys(t *testing.T) {
	t.Parallel()
	object := func(from, to int, value string) []byte {
		out := []byte{'{'}
		for i := from; i < to; i++ {
			if i > from {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `"k%d":%s`, i, value)
		}
		return append(out, '}')
	}
	var j profile.JSONMerger
	for _, mode := range []profile.MergeMode{profile.Overwrite, profile.Fill} {
		for _, src := range [][]byte{object(20, 90, `{"a":1}`), object(50, 55, "null"), object(0, 60, "2"), object(10, 70, "null"), object(200, 201, `"x"`)} {
			dst := object(0, 60, "1")
			got, _, err := j.Merge(dst, src, mode)
			if err != nil {
				t.Fatal(err)
			}
			want := decodeObject(dst)
			naiveMerge(want, decodeObject(src), mode == profile.Fill)
			if !reflect.DeepEqual(decodeObject(got), want) {
				t.Fatalf("mode %d: %s into %s gives %s", mode, src, dst, got)
			}
		}
	}
}
