package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/sharedlist"
)

// restored puts an engine together from a chain of files.
func restored(t *testing.T, files [][]byte, universe *roaring.Bitmap) (*Engine, error) {
	t.Helper()
	r := NewRestorer()
	for _, f := range files {
		if err := r.Read(bufio.NewReader(bytes.NewReader(f))); err != nil {
			return nil, err
		}
	}
	return r.Engine(universe.Clone())
}

func hashOf(t *testing.T, e *Engine) string {
	t.Helper()
	var h bytes.Buffer
	if err := e.Hash(func(b []byte) { fmt.Fprintf(&h, "%d:%x,", len(b), b) }); err != nil {
		t.Fatal(err)
	}
	return h.String()
}

// TestRestoreWhereStatesComeAndGo (R1): segments on one type of events come and
// go, so that slots pass from state to state between the files of a chain. Each
// chain makes the engine that wrote it, whether that cleaned up or not, and its
// rows are sound.
func TestRestoreWhereStatesComeAndGo(t *testing.T) {
	const profiles, rounds = 60, 25
	for seed := range testlevel.Count[uint64](2, 6) {
		inlineUpTo(t, []int{maxSection, 20}[seed%2])
		rng := rand.New(rand.NewPCG(seed, 9))
		e := crowd(t, 19_800*dayMs, profiles)
		defined := map[string]bool{}
		var files [][]byte
		for round := range rounds {
			for range 1 + rng.IntN(12) {
				id := fmt.Sprint("s", rng.IntN(40))
				if defined[id] {
					e.Undefine(id)
					delete(defined, id)
					continue
				}
				text := mixed[rng.IntN(len(mixed))]
				if rng.IntN(3) == 0 { // a state of its own
					text = fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d},"count":{"op":">=","value":3}}`, 2+rng.IntN(80))
				}
				defineSegment(t, e, id, text)
				defined[id] = true
			}
			for range rng.IntN(300) {
				act(e, uint32(rng.IntN(profiles)), e.NowMs(), "act", fmt.Sprintf(`{"value":%d,"sku":"sku-%d"}`, rng.IntN(200), rng.IntN(9)))
			}
			for range rng.IntN(3) { // cleans up
				e.Advance(e.NowMs()+1, 1000)
			}
			e.Transitions()
			if rng.IntN(5) == 0 {
				files = nil
			}
			files = append(files, write(t, e.Freeze(len(files) == 0)))
			again, err := restored(t, files, e.universe)
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			if hashOf(t, again) != hashOf(t, e) {
				t.Fatalf("R1: seed %d, round %d: the chain of %d files makes another engine", seed, round, len(files))
			}
			for _, g := range again.types["act"].groupsOrNone() {
				if err := auditGroup(g); err != nil {
					t.Fatalf("seed %d, round %d: %v", seed, round, err)
				}
			}
			if rng.IntN(3) == 0 {
				e = again // the chain continues after a restart
			}
		}
	}
}

// TestRestoredPagesAreNotCopied: a page that was read is changed where it is, until something was
// frozen; it has no more room than its rows need to grow a little, and is written again if it
// changed, then alone.
func TestRestoredPagesAreNotCopied(t *testing.T) {
	e := crowd(t, 19_800*dayMs, 1000)
	defineSegment(t, e, "s", `{"kind":"activity","event":"act","count":{"op":">=","value":3}}`)
	for o := range uint32(1000) {
		act(e, o, e.NowMs(), "act", `{}`)
	}
	e, err := restored(t, [][]byte{write(t, e.Freeze(true))}, e.universe)
	if err != nil {
		t.Fatal(err)
	}
	g := e.types["act"].groups[0]
	if rows := g.pages.At(3).rows(); int(g.pages.At(3).room) > 2*len(rows) {
		t.Errorf("a page with %d bytes of rows has room for %d", len(rows), g.pages.At(3).room)
	}
	change := func() (copied bool) {
		before := g.pages.At(3)
		act(e, 3*pageRows+1, e.NowMs(), "act", `{}`)
		return g.pages.At(3) != before
	}
	if change() {
		t.Error("a page that was read is copied")
	}
	f := g.freeze(false)
	if len(f.changed) != 1 || f.changed[0] != (changedPage{3, 2}) {
		t.Errorf("%v is written", f.changed)
	}
	if !change() {
		t.Error("a page that was frozen is changed")
	}
	if err := auditGroup(g); err != nil {
		t.Error(err)
	}
}

func (k *kin) groupsOrNone() []*group {
	if k == nil {
		return nil
	}
	return k.groups
}

// TestStatesShareRows: states of one type of events fill groups one after
// another, what is freed is used again, and groups without states go.
func TestStatesShareRows(t *testing.T) {
	e := crowd(t, 19_800*dayMs, 100)
	e.shares = false // a state for each window
	groups := func() int { return len(e.types["act"].groupsOrNone()) }
	fill := func(name string, n int) {
		for i := range n {
			defineSegment(t, e, fmt.Sprint(name, i), fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d}}`, 1+i+10*len(name)))
		}
	}
	fill("a", 50)
	for o := range uint32(100) {
		act(e, o, e.NowMs(), "act", `{}`)
	}
	if groups() != 4 || e.Stats().Values != 5000 {
		t.Fatalf("50 states have %d groups, %d values", groups(), e.Stats().Values)
	}
	for i := 1; i < 50; i++ {
		e.Undefine(fmt.Sprint("a", i))
	}
	if groups() != 1 || e.Stats().Values != 100 {
		t.Fatalf("one state has %d groups, %d values", groups(), e.Stats().Values)
	}
	g := e.types["act"].groups[0]
	before := g.bytes()
	e.Advance(e.NowMs()+1, 0)
	if g.retired != 0 || g.bytes() > before || len(g.row(7)) != sectionHead+8 {
		t.Fatalf("slots %b are still retired, a row has %d bytes", g.retired, len(g.row(7)))
	}
	fill("bb", 15)
	if groups() != 1 {
		t.Fatalf("16 states have %d groups", groups())
	}
}

// TestFullPage: the longest rows of a page fit its ends.
func TestFullPage(t *testing.T) {
	g, ed := &group{}, &rowEdit{}
	for i := range groupSlots {
		g.join(&state{id: uint32(i + 1)})
	}
	for o := range uint32(2 * pageRows) {
		for _, st := range g.live {
			st.mutate(ed, o, func(v []byte) []byte { return append(v, bytes.Repeat([]byte{byte(o)}, maxSection)...) })
		}
	}
	if err := auditGroup(g); err != nil {
		t.Fatal(err)
	}
	for o := range uint32(2 * pageRows) {
		if v := g.live[groupSlots-1].get(o); !bytes.Equal(v, bytes.Repeat([]byte{byte(o)}, maxSection)) {
			t.Fatalf("row %d ends with %x", o, v)
		}
	}
}

// TestRestoreRefusesRowsOutOfPlace: files whose rows cannot be are refused, and
// those of another version are, with a word on why.
func TestRestoreRefusesRowsOutOfPlace(t *testing.T) {
	e := crowd(t, 19_800*dayMs, 10, mixed[0], mixed[16])
	for o := range uint32(10) {
		act(e, o, e.NowMs(), "act", `{}`)
	}
	good := func() *Frozen { return e.Freeze(true) }
	if _, err := restored(t, [][]byte{write(t, good())}, e.universe); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(f *Frozen){
		"a group twice":         func(f *Frozen) { f.groups = append(f.groups, f.groups[0]) },
		"no group":              func(f *Frozen) { f.groups = nil },
		"a group of no state":   func(f *Frozen) { f.groups = append(f.groups, frozenGroup{}) },
		"a state without rows":  func(f *Frozen) { f.groups[0].ids[1] = 0 },
		"a state not listed":    func(f *Frozen) { f.groups[0].ids[2] = 77 },
		"a state in two slots":  func(f *Frozen) { f.groups[0].ids[2] = f.groups[0].ids[1] },
		"values of other folds": func(f *Frozen) { f.groups[0].ids[0], f.groups[0].ids[1] = f.groups[0].ids[1], f.groups[0].ids[0] },
	} {
		f := good()
		edit(f)
		if _, err := restored(t, [][]byte{write(t, f)}, e.universe); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Between the files of a chain no state moves, and no group falls apart.
	moved := good()
	moved.groups[0].ids[2], moved.groups[0].ids[1] = moved.groups[0].ids[1], 0
	moved.groups[0].pages = sharedlist.List[page]{}
	split := good()
	split.groups = append(split.groups, frozenGroup{})
	split.groups[1].ids[1], split.groups[0].ids[1] = split.groups[0].ids[1], 0
	split.groups[0].pages = sharedlist.List[page]{}
	for name, f := range map[string]*Frozen{"moved": moved, "split": split} {
		f.groups[0].changed = nil
		if _, err := restored(t, [][]byte{write(t, good()), write(t, f)}, e.universe); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	old := write(t, good())
	old[0] = 1
	if _, err := restored(t, [][]byte{old}, e.universe); !errors.Is(err, ErrFormat) {
		t.Errorf("version 1: %v", err)
	}
}

func defineSegment(t *testing.T, e *Engine, id, text string) {
	t.Helper()
	n, err := segment.Parse([]byte(text), segment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	e.Define(id, n, 1, func(string) bool { return false })
}
