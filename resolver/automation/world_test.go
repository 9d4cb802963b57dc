package automation

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

const testAccount = 7

// world is an account without the machine: profiles that can be reached, an outbox, and what
// flows did to them, in order.
type world struct {
	t      *testing.T
	store  *state.Store
	run    *Runner
	flows  *State
	engine *engine.Engine
	sets   *profile.OrdinalSets
	now    int64
	seq    uint64

	docs    []profile.Document // by ordinal
	keys    map[string]uint32
	credits int64
	full    bool   // the outbox is
	calls   uint64 // that were queued
	effects []string
	// reach answers [Outbox.Reach]; nil has everybody with an e-mail address reached by it.
	reach func(d *profile.Document, channel string) flows.Result
	// limited is what limits say of messages; heldUntil goes with flows.Held.
	limited   flows.Result
	heldUntil int64
}

func newWorld(t *testing.T, people int) *world {
	t.Helper()
	store, err := state.Open(vfs.NewMem(), "live", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.DB.Close() })
	w := &world{t: t, store: store, engine: engine.New(), sets: profile.NewOrdinalSets(), now: 1_000_000_000_000,
		docs: make([]profile.Document, people), keys: map[string]uint32{}, credits: 1000, limited: flows.Queued}
	w.run = NewRunner(store, new(Work))
	w.flows = New(testAccount, w.run, w)
	w.record(func(*feature.Tx) {
		for o := range people {
			w.docs[o].Identifiers = []profile.Identifier{{Kind: identifier.Email, Value: fmt.Appendf(nil, "u%d@x.io", o)}}
			w.engine.Touch(uint32(o))
			w.engine.Create(uint32(o))
			w.engine.Evaluate(uint32(o))
		}
	})
	return w
}

// record applies a record: time passes, then what happens in it has its effect.
func (w *world) record(what func(tx *feature.Tx)) {
	w.seq++
	tx := &feature.Tx{Account: testAccount, AtMs: w.now, Offset: int64(w.seq), Store: w.store}
	binary.LittleEndian.PutUint64(tx.Record[:], w.seq)
	w.run.Begin(w.now, w.run.Bounds)
	w.engine.Advance(w.now, w.flows.Advance(100))
	w.flows.React()
	what(tx)
	w.flows.React()
	w.flows.FinishPublishing()
}

// rest lets continue records work off what is left.
func (w *world) rest() {
	w.t.Helper()
	for n := 0; w.flows.Busy(w.now); n++ {
		if n == 10_000 {
			w.t.Fatal("work without an end")
		}
		w.drainOnce()
	}
}

// drainOnce is a continue record.
func (w *world) drainOnce() {
	w.record(func(*feature.Tx) {
		w.flows.Drain(w.run.Share(1))
		w.flows.React()
		w.flows.CatchUp()
	})
}

// do carries a command out and returns its answer.
func (w *world) do(name string, args any) (reply any, refusal *refuse.Refusal) {
	w.t.Helper()
	w.record(func(tx *feature.Tx) {
		var err error
		if refusal, err = Commands[name](w.flows, tx, must.JSON(args)); err != nil {
			w.t.Fatal(err)
		}
		reply = tx.Reply
	})
	return reply, refusal
}

func (w *world) must(name string, args any) any {
	w.t.Helper()
	reply, refusal := w.do(name, args)
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	return reply
}

// live makes a flow and takes it live.
func (w *world) live(definition string) string {
	w.t.Helper()
	id := w.must(CommandCreate, Save{Definition: []byte(definition)}).(Reply).ID
	if r := w.must(CommandPublish, ID{ID: id}).(Reply); r.Status != Live {
		w.t.Fatalf("the flow is %s", r.Status)
	}
	return id
}

// event records an event of profiles.
func (w *world) event(typ string, people ...uint32) {
	w.record(func(*feature.Tx) {
		for _, o := range people {
			w.flows.Event(o, []byte(typ), []byte(`{"a":1}`))
		}
	})
}

// answer reports that the first profile's call was delivered.
func (w *world) answer(flow string, seq uint64) {
	w.record(func(*feature.Tx) { w.flows.Answer(flow, 0, seq, true, "") })
}

func (w *world) state(id string) FlowState {
	w.t.Helper()
	f, ok := w.flows.Find(id)
	if !ok {
		w.t.Fatalf("there is no flow %s", id)
	}
	return f
}

// expect compares the effects since the last call.
func (w *world) expect(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.effects, want) {
		w.t.Fatalf("the effects are\n%q, want\n%q", w.effects, want)
	}
	w.effects = nil
}

func (w *world) hash() []byte {
	w.t.Helper()
	var all []byte
	put := func(b []byte) { all = append(append(all, b...), '\n') }
	w.sets.Hash(func(string) bool { return false }, put)
	if err := w.flows.Hash(put); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// reload writes what changed and reads the state back.
func (w *world) reload() {
	w.t.Helper()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.flows.Freeze()
	_, entities := w.store.Freeze()
	for k, v := range entities {
		if v == nil {
			must(w.store.DB.Delete([]byte(k), pebble.NoSync))
		} else {
			must(w.store.DB.Set([]byte(k), v, pebble.NoSync))
		}
	}
	w.store.Thaw()
	bounds := w.run.Bounds
	w.run = NewRunner(w.store, new(Work))
	w.run.Bounds = bounds
	w.flows = New(testAccount, w.run, w)
	must(w.store.Each(state.TableEntity, func(_ uint64, rest, value []byte) error {
		known, err := w.flows.Load(rest[0], string(rest[1:]), value)
		if err == nil && !known {
			err = fmt.Errorf("an entity of kind %q", rest[0])
		}
		return err
	}))
	must(w.run.LoadEnrolments(func(uint64) *State { return w.flows }))
	w.flows.Open()
}

func (w *world) effect(format string, args ...any) {
	w.effects = append(w.effects, fmt.Sprintf(format, args...))
}

func (w *world) ProfileCount() uint32 { return uint32(len(w.docs)) }

func (w *world) ProfileID(o uint32) profile.ID { return profile.NewID([16]byte{1}, o) }

func (w *world) Root(o uint32) uint32 { return o }

func (w *world) Erased(uint32) bool { return false }

func (w *world) Named(email, _, _ string) (uint32, *refuse.Refusal) {
	for o := range w.docs {
		if string(w.docs[o].Newest(identifier.Email)) == email {
			return uint32(o), nil
		}
	}
	return 0, refuse.NotFound("", "no profile has this e-mail")
}

func (w *world) Load(o uint32) *profile.Document { return &w.docs[o] }

func (w *world) Save(uint32, *profile.Document) {}

func (w *world) Update(o uint32, d *profile.Document, _ engine.Fields) {
	w.effect("update %d: %s", o, d.Attributes)
}

func (w *world) Record(o uint32, typ string, _ map[string]any, _ []byte) {
	w.effect("%s %d", typ, o)
	w.flows.Event(o, []byte(typ), nil)
}

func (w *world) Set(name string) *profile.OrdinalSet { return w.sets.Set(name) }

func (w *world) DropSet(name string) { w.sets.Drop(name, func(uint16) {}) }

func (w *world) Sum([]byte) identifier.Hash { return identifier.Hash{} }

func (w *world) KeyUsed(flow, key string) (o uint32, ok bool) {
	o, ok = w.keys[flow+key]
	return o, ok
}

func (w *world) UseKey(flow, key string, o uint32) { w.keys[flow+key] = o }

func (w *world) Engine() *engine.Engine { return w.engine }

func (w *world) Define(id string, root *segment.Node, offset int64) {
	w.engine.Define(id, root, offset, func(string) bool { return false })
}

func (w *world) MaxLeaves() int { return 3 }

func (w *world) EmitTransitions() { w.engine.Transitions() }

func (w *world) Reach(d *profile.Document, channel string) flows.Result {
	if w.reach != nil {
		return w.reach(d, channel)
	}
	if channel == flows.StepEmail && d.Has(identifier.Email) {
		return flows.Queued
	}
	return flows.NoAddress
}

func (w *world) Credits() int64 { return w.credits }

func (w *world) MayGo(uint32, string) (flows.Result, int64) { return w.limited, w.heldUntil }

func (w *world) QueueMessage(from Source, _ *profile.Document, m *flows.Message) bool {
	if w.full {
		return false
	}
	if m.Email == nil {
		w.effect("%s to %d", m.Channel, from.Ordinal)
		return true
	}
	w.effect("mail %s to %d", m.Email.Subject, from.Ordinal)
	if w.credits--; w.credits == 0 {
		w.flows.PauseForCredits()
	}
	return true
}

func (w *world) QueueCall(from Source, x *flows.Webhook) (seq uint64, ok bool) {
	if w.full {
		return 0, false
	}
	w.calls++
	w.effect("call %s for %d with %s", x.URL, from.Ordinal, from.Event)
	return w.calls, true
}

func (w *world) HasRoom() bool { return !w.full }

func (w *world) HasOpenCart(uint32) bool { return false }

func (w *world) Rules() int { return state.RulesNoted }

func (w *world) Scrub(string) {}

func (w *world) World() flows.World { return worldOfFlows{} }

// worldOfFlows has nothing that a flow could refer to.
type worldOfFlows struct{}

func (worldOfFlows) Segment(string) bool { return false }

func (worldOfFlows) List(string) bool { return false }

func (worldOfFlows) Template(string) (subject string, ok bool) { return "", false }

func (worldOfFlows) Sender(string) string { return "" }

func (worldOfFlows) CheckCondition(*segment.Node) error { return nil }
