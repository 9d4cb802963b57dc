package historytest

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

// Named is a history and its name in messages.
type Named struct {
	Name string
	query.History
}

const account = 7

// Cases is MUSTER_S1_CASES, or n when that is not set.
func Cases(n int) int {
	if set, err := strconv.Atoi(os.Getenv("MUSTER_S1_CASES")); err == nil {
		return set
	}
	return n
}

// EngineEqualsHistory drives the whole state machine, with its builder and one or
// several histories, through random events (late ones among them), attributes,
// merges, definitions that come, change and go, steps of the clock and restarts
// from checkpoints. At random instants, the edges of windows ± 1 ms among them,
// the members the engine keeps must be those that a naive scan and those that
// each history finds (S1), and in the end what the transitions in each history
// add up to (S2).
//
// A life has so many steps. MUSTER_SEED is the first seed; cases is how many
// comparisons are made at least (a segment at an instant is one). The builder
// asks the first of the histories.
func EngineEqualsHistory(t *testing.T, open func(t *testing.T) []Named, steps, cases int) {
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		seed = n
	}
	var done, members, taken, next atomic.Int64
	t.Run("lives", func(t *testing.T) {
		for worker := range 2 {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for done.Load() < int64(cases) {
					w := newLife(t, seed+uint64(next.Add(1))-1, open(t))
					for range steps {
						w.step()
					}
					w.finish()
					taken.Add(int64(steps))
					done.Add(int64(w.cases))
					members.Add(int64(w.members))
				}
			})
		}
	})
	t.Logf("%d cases in %d steps, %d members in all, %d seeds from %d", done.Load(), taken.Load(), members.Load(), next.Load(), seed)
	if members.Load() < done.Load() {
		t.Fatal("the questions hit too few members to tell anything")
	}
}

// life is one account from its first record on.
type life struct {
	t     *testing.T
	seed  uint64
	gen   *segmenttest.Gen
	rng   *rand.Rand
	fs    *vfs.MemFS
	log   *file.Log
	store query.History // of the node: all of them
	all   []Named
	node  *node.Node
	clock atomic.Int64

	events []lived
	// engagedMs are the times of opens and clicks.
	engagedMs []int64
	cases     int
	members   int
}

// nobody stands for an erased profile.
const nobody = ^uint32(0)

type lived struct {
	profile resolver.ProfileID
	event   segment.NaiveEvent
}

func newLife(t *testing.T, seed uint64, all []Named) *life {
	w := &life{t: t, seed: seed, gen: segmenttest.New(seed), rng: rand.New(rand.NewPCG(seed, 21)), fs: vfs.NewMem(),
		all: all, store: together{History: all[0].History, all: all}}
	w.clock.Store(segmenttest.BaseMs - 2*86_400_000)
	w.open()
	zero := hex.EncodeToString(make([]byte, 32))
	_, err := w.node.Command(context.Background(), account, resolver.CommandBootstrap, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, HashKey: zero[:32], SecretHash: zero, Settings: resolver.DefaultSettings(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// source is read by all loops of the node.
type source struct {
	mu sync.Mutex
	*rand.Rand
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range p {
		p[i] = byte(s.Uint32())
	}
	return len(p), nil
}

// open does not use servertest.StartNode: a failure names the seed, and a close has a time limit.
func (w *life) open() {
	var err error
	if w.log, err = file.Open("log", file.Options{FS: w.fs, Partitions: 1}); err != nil {
		w.t.Fatal(err)
	}
	w.node, err = node.Open(context.Background(), node.Options{
		FS: w.fs, Dir: "state", Log: w.log, History: w.store, Rand: &source{Rand: rand.New(rand.NewPCG(w.rng.Uint64(), 1))},
		Now: func() time.Time { return time.UnixMilli(w.clock.Load()) }, MaxStampAhead: 1000 * 24 * time.Hour,
		CheckpointInterval: time.Hour, Feed: node.FeedOptions{Delay: time.Hour},
	})
	if err != nil {
		w.fatalf("open: %v", err)
	}
}

func (w *life) close() {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	if err := w.node.Close(ctx); err != nil {
		w.fatalf("close: %v", err)
	}
	if err := w.log.Close(); err != nil {
		w.fatalf("close: %v", err)
	}
}

func (w *life) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("repeat with MUSTER_SEED=%d MUSTER_S1_CASES=1: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *life) step() {
	switch n := w.rng.IntN(100); {
	case n < 42:
		w.happen()
	case n < 50:
		w.manage()
	case n < 62:
		w.define()
	case n < 80:
		w.pass()
	case n < 96:
		w.compare(w.rng.IntN(3) == 0)
	case n < 98:
		if err := w.node.Checkpoint(); err != nil {
			w.fatalf("checkpoint: %v", err)
		}
	default:
		w.close()
		w.open()
	}
}

// happen sends a record of a few events of a few people.
func (w *life) happen() {
	now := w.clock.Load()
	evs := make([]eventlog.Event, 1+w.rng.IntN(6))
	for i := range evs {
		drawn := w.gen.Events(1)[0]
		p := w.gen.Profile()
		e := eventlog.Event{Type: []byte(drawn.Type), Properties: drawn.Properties}
		if w.rng.IntN(3) == 0 {
			e.HasTime, e.TimeMs = true, min(drawn.TimeMs, now)
		}
		person := w.rng.IntN(25)
		if w.rng.IntN(3) == 0 {
			e.AnonymousID = fmt.Appendf(nil, "device-%d", person+w.rng.IntN(2))
			e.Public = w.rng.IntN(2) == 0
		}
		for e.AnonymousID == nil && e.Email == nil && e.ExternalID == nil && e.Phone == nil {
			if w.rng.IntN(2) == 0 {
				e.Email = fmt.Appendf(nil, "p%d@example.com", person)
			}
			if w.rng.IntN(3) == 0 {
				e.ExternalID = fmt.Appendf(nil, "x-%d", person+w.rng.IntN(2))
			}
			if w.rng.IntN(8) == 0 {
				e.Phone = fmt.Appendf(nil, "+49 30 %d", 1000+person)
			}
		}
		if w.rng.IntN(3) == 0 {
			e.FirstName, e.LastName = []byte(p.FirstName), []byte(p.LastName)
			if string(p.Geo) != "{}" {
				e.Geo = p.Geo
			}
			if string(p.Attributes) != "{}" {
				e.Attributes = p.Attributes
			}
		}
		evs[i] = e
	}
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: now}
	for i := range env.ID {
		env.ID[i] = byte(w.rng.Uint32())
	}
	rec := eventlog.AppendEventCount(env.Append(nil), len(evs))
	for i := range evs {
		rec = eventlog.AppendEvent(rec, &evs[i])
	}
	var out resolver.Outcome
	if err := w.node.Submit(context.Background(), account, rec, &out); err != nil {
		w.fatalf("submit: %v", err)
	}
	for i, o := range out.Events {
		if o.Status != resolver.EventAccepted {
			continue
		}
		at := now // neither log time nor the clock here goes back
		if evs[i].HasTime {
			at = evs[i].TimeMs
		}
		w.events = append(w.events, lived{o.Profile, segment.NaiveEvent{TimeMs: at, Type: string(evs[i].Type), Sent: true, Properties: evs[i].Properties}})
	}
}

// manage changes by a command the data of a person: consents, blocks,
// engagement, devices, or all of it at once by an erasure.
func (w *life) manage() {
	id := ""
	if len(w.events) > 0 {
		id = w.events[w.rng.IntN(len(w.events))].profile.String()
	}
	pick := func(list ...string) string { return list[w.rng.IntN(len(list))] }
	channel, name, args := pick("email", "email", "sms", "push"), "", any(nil)
	switch w.rng.IntN(16) {
	case 0, 1:
		name, args = contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("p%d@example.com", w.rng.IntN(40))}
	case 2, 3, 4, 5:
		name, args = contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: channel, Status: pick("subscribed", "subscribed", "unsubscribed"), Source: "form"}
	case 6, 7:
		name, args = contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: channel, Reason: pick("", "bounced", "complained", "suppressed")}
	case 8, 9, 10, 11:
		name, args = messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: channel,
			Kind: pick(messages.EngagementOpen, messages.EngagementClick, messages.EngagementComplaint)}
		w.engagedMs = append(w.engagedMs, w.clock.Load())
	case 12, 13:
		name, args = contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: id, Kind: pick("webpush", "fcm", "apns"), Address: pick("a", "b", "c")}
	case 14:
		s := resolver.DefaultSettings()
		s.DoubleOptIn = w.rng.IntN(2) == 0
		name, args = resolver.CommandSettingsSet, s
	default:
		if w.rng.IntN(3) > 0 {
			return
		}
		name, args = resolver.CommandContactErase, resolver.ContactErase{ID: id}
	}
	_, err := w.node.Command(context.Background(), account, name, args)
	if _, refused := err.(*resolver.Refusal); err != nil && !refused { //nolint:errorlint // Command returns it bare
		w.fatalf("%s: %v", name, err)
	}
}

func (w *life) segments() (list []resolver.Segment) {
	err := w.node.Read(context.Background(), account, func(v *resolver.View) error {
		list = v.Segments().All()
		return nil
	})
	if err != nil {
		w.fatalf("read: %v", err)
	}
	return list
}

func (w *life) define() {
	have := w.segments()
	d := w.gen.DefinitionJSON()
	// Other segments are referred to by the ids there are.
	for _, id := range []string{"seg_a", "seg_b", "seg_gone"} {
		if len(have) > 0 {
			d = bytes.ReplaceAll(d, []byte(id), []byte(have[w.rng.IntN(len(have))].ID))
		}
	}
	var err error
	switch n := w.rng.IntN(10); {
	case n < 6 && len(have) < 12:
		_, err = w.node.Command(context.Background(), account, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(d)})
	case n < 8 && len(have) > 0:
		_, err = w.node.Command(context.Background(), account, resolver.CommandSegmentUpdate,
			resolver.SegmentSave{ID: have[w.rng.IntN(len(have))].ID, Name: "s", Definition: json.RawMessage(d)})
	case len(have) > 0:
		_, err = w.node.Command(context.Background(), account, resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: have[w.rng.IntN(len(have))].ID})
	}
	if _, refused := err.(*resolver.Refusal); err != nil && !refused { //nolint:errorlint // Command returns it bare
		w.fatalf("define: %v", err)
	}
}

// pass lets time pass, often to just beside the end of a window.
func (w *life) pass() {
	now := w.clock.Load()
	to := now + w.rng.Int64N(5_000)
	switch w.rng.IntN(4) {
	case 0:
		to = now + w.rng.Int64N(3*86_400_000)
	case 1, 2:
		to = w.edge(now)
	}
	if to > now && to < segmenttest.BaseMs+400*86_400_000 {
		w.clock.Store(to)
	}
}

// edge is an instant beside which some event leaves some window, or now.
func (w *life) edge(now int64) int64 {
	if len(w.engagedMs) > 0 && w.rng.IntN(4) == 0 { // a status or a score may change
		at := w.engagedMs[w.rng.IntN(len(w.engagedMs))] + int64(1+w.rng.IntN(4))*30*86_400_000 + int64(w.rng.IntN(3)) - 1
		if at >= now {
			return at
		}
	}
	var windows []int64
	for _, s := range w.segments() {
		for _, a := range s.Root.Activities() {
			windows = append(windows, a.WindowMs)
		}
		for _, leaf := range s.Root.Leaves() {
			if leaf.Kind == segment.KindAttribute && leaf.Attribute.Predicate.Timed() {
				windows = append(windows, leaf.Attribute.Predicate.WindowMs)
			}
		}
	}
	if len(windows) == 0 || len(w.events) == 0 {
		return now
	}
	for range 20 {
		e := w.events[w.rng.IntN(len(w.events))]
		if at := e.event.TimeMs + windows[w.rng.IntN(len(windows))] + int64(w.rng.IntN(3)) - 1; at >= now {
			return at
		}
	}
	return now
}

// moment is one state of the account and what the engine says of it.
type moment struct {
	cut     query.Cut
	atMs    int64
	defs    map[string]*segment.Node
	members map[string]*roaring.Bitmap
	snap    *view.Snapshot
	roots   []uint32 // of the events' profiles
}

func (w *life) moment(atMs int64) *moment {
	m := &moment{defs: map[string]*segment.Node{}, members: map[string]*roaring.Bitmap{}}
	err := w.node.Read(context.Background(), account, func(v *resolver.View) error {
		m.cut, m.atMs = v.Cut(), max(atMs, v.LogTimeMs())
		for _, s := range v.Segments().All() {
			m.defs[s.ID] = s.Root
			if b, ok := v.Segments().Members(s.ID, m.atMs); ok {
				m.members[s.ID] = b
				if n, _ := v.Segments().Count(s.ID, m.atMs); n != b.GetCardinality() {
					w.fatalf("S1: %s has %v, counted as %d", s.ID, b, n)
				}
			}
		}
		for _, e := range w.events {
			o, ok := v.Profiles().Resolve(e.profile)
			if !ok {
				o = nobody // erased
			}
			m.roots = append(m.roots, o)
		}
		m.snap = v.Snapshot()
		return nil
	})
	if err != nil {
		w.fatalf("read: %v", err)
	}
	return m
}

// compare compares the three. With patience it first waits until every segment
// is live.
func (w *life) compare(patience bool) {
	at := w.clock.Load()
	if w.rng.IntN(2) == 0 {
		at = w.edge(at)
	}
	m := w.moment(at)
	if patience && len(m.members) < len(m.defs) {
		eventually.Holds(w.t, fmt.Sprintf("all segments are live (MUSTER_SEED=%d MUSTER_S1_CASES=1)", w.seed), func() bool {
			m.snap.Close()
			m = w.moment(at)
			return len(m.members) == len(m.defs)
		})
	}
	defer m.snap.Close()
	if len(m.members) == 0 {
		return
	}
	if err := w.node.WaitHistory(context.Background(), m.cut); err != nil {
		w.fatalf("history: %v", err)
	}
	lookup := func(id string) (*segment.Node, bool) { n, ok := m.defs[id]; return n, ok }
	people := w.people(m)
	ids := make([]string, 0, len(m.members))
	for id := range m.members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		got := m.members[id]
		naive := roaring.New()
		for o, p := range people {
			if m.defs[id].Naive(p, m.atMs, lookup) {
				naive.Add(o)
			}
		}
		if !got.Equals(naive) {
			w.fatalf("S1: %s at %d, cut %d: engine has %v, naive %v\n%s", id, m.atMs, m.cut.UpTo, got, naive, m.defs[id].Canonical())
		}
		for _, h := range w.all {
			sql, err := answered(w.t, h.Name, func() (*roaring.Bitmap, error) {
				return query.Evaluate(context.Background(), h.History, query.Evaluation{
					Account: account, Cut: m.cut, AtMs: m.atMs, Root: m.defs[id], Profiles: m.snap, Segments: lookup})
			})
			if err != nil {
				w.fatalf("%s: %v", h.Name, err)
			}
			if !got.Equals(sql) {
				w.fatalf("S1: %s at %d, cut %d: engine and naive have %v, %s %v\n%s", id, m.atMs, m.cut.UpTo, got, h.Name, sql, m.defs[id].Canonical())
			}
		}
		w.cases++
		w.members += int(got.GetCardinality())
	}
}

// answered asks a history again while it is unavailable: a server that shares a busy machine
// may be silent for longer than a store waits for it.
func answered[T any](t testing.TB, name string, ask func() (T, error)) (answer T, err error) {
	t.Helper()
	eventually.Holds(t, name+" answers", func() bool {
		answer, err = ask()
		return !errors.Is(err, query.ErrUnavailable)
	})
	return answer, err
}

func (w *life) people(m *moment) map[uint32]*segment.NaiveProfile {
	people := map[uint32]*segment.NaiveProfile{}
	err := m.snap.Scan(context.Background(), func(o uint32, f *segment.Facts) error {
		people[o] = segment.NaiveOf(f, nil)
		return nil
	})
	if err != nil {
		w.fatalf("scan: %v", err)
	}
	for i, e := range w.events {
		if p := people[m.roots[i]]; p != nil {
			p.Events = append(p.Events, e.event)
		}
	}
	return people
}

// finish checks S2 at the end of the life.
func (w *life) finish() {
	w.compare(true)
	// A command lets time come up to the clock, and all pending transitions are emitted.
	if _, err := w.node.Command(context.Background(), account, eventtypes.CommandDefine, eventtypes.Define{Name: "the end"}); err != nil {
		w.fatalf("%v", err)
	}
	for i := 0; ; i++ {
		m := w.moment(0)
		if err := w.node.WaitHistory(context.Background(), m.cut); err != nil {
			w.fatalf("history: %v", err)
		}
		m.snap.Close()
		wrong := ""
		for _, h := range w.all {
			wrong += w.transitions(m, h)
		}
		if wrong == "" {
			break
		}
		if i == 60_000 {
			w.fatalf("S2: %s", wrong)
		}
		time.Sleep(time.Millisecond) // between two looks: transitions reach history after what caused them
	}
	w.close()
}

// transitions tells how what the transitions of a history add up to differs from
// the members.
func (w *life) transitions(m *moment, h Named) (wrong string) {
	said := map[string]*roaring.Bitmap{}
	for id := range m.defs {
		said[id] = roaring.New()
	}
	q := query.TransitionsQuery{Cut: m.cut, Account: account, Limit: 1000}
	for more := true; more; {
		list, err := answered(w.t, h.Name, func() ([]query.Transition, error) { return h.Transitions(context.Background(), q) })
		if err != nil {
			w.fatalf("transitions: %v", err)
		}
		for _, x := range list {
			q.After = x.Key
			b := said[x.Segment]
			if b == nil {
				continue // of a segment that was deleted
			}
			if b.Contains(x.Ordinal) == x.Entered {
				w.fatalf("S2: %+v says what was so already", x)
			}
			if x.Entered {
				b.Add(x.Ordinal)
			} else {
				b.Remove(x.Ordinal)
			}
		}
		more = len(list) == q.Limit
	}
	for id, b := range said {
		if m.members[id] == nil || !b.Equals(m.members[id]) {
			wrong = fmt.Sprintf("%s, %s: transitions add up to %v, members are %v", h.Name, id, b, m.members[id])
		}
	}
	return wrong
}

// together is histories that are fed alike. The first is asked.
type together struct {
	query.History
	all []Named
}

func (h together) Position(ctx context.Context, partition int) (int64, error) {
	least := int64(math.MaxInt64)
	for _, x := range h.all {
		at, err := x.Position(ctx, partition)
		if err != nil {
			return 0, err
		}
		least = min(least, at)
	}
	return least, nil
}

func (h together) Append(ctx context.Context, b *query.Batch) error {
	for _, x := range h.all {
		if err := x.Append(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	return nil
}
