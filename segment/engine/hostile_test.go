package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// hostileDefinitions need pieces of history and of profiles of every kind.
var hostileDefinitions = []string{
	`{"kind":"activity","event":"act","count":{"op":">=","value":2}}`,
	`{"kind":"activity","event":"act","window":{"last_days":1},"count":{"op":">=","value":3}}`,
	`{"kind":"activity","event":"act","window":{"last_days":1},"aggregate":{"fn":"sum","property":"p","op":">","value":1}}`,
	`{"kind":"activity","event":"act","window":{"last_days":1},"aggregate":{"fn":"min","property":"p","op":">","value":1}}`,
	`{"kind":"activity","event":"act","aggregate":{"fn":"avg","property":"p","op":">","value":1}}`,
	`{"kind":"activity","event":"act","window":{"last_days":1},"aggregate":{"fn":"distinct","property":"p","op":">=","value":2}}`,
	`{"kind":"activity","event":"act","where":[{"property":"d","op":"in_last_days","value":1}],"count":{"op":">=","value":1}}`,
	`{"match":"all","conditions":[{"kind":"attribute","field":"first_name","op":"=","value":"Jo"},{"kind":"attribute","field":"created_at","op":"in_last_days","value":1}]}`,
	`{"match":"any","conditions":[{"kind":"segment","segment_id":"s0"},{"kind":"segment","segment_id":"s7","member":false},{"kind":"list","list_id":"vip"}]}`,
}

const hostileProfiles = 6

func hostileFacts(o uint32) *segment.Facts {
	return &segment.Facts{Lists: []string{"vip"}[:o%2], Fields: segment.Fields{FirstName: []byte("Jo")[:o%3], CreatedAtMs: 86_400_000}}
}

// hostileEngine is an engine that waits for its past.
func hostileEngine(t testing.TB) *Engine {
	e := New()
	e.Advance(100_000_000, 1)
	for o := range uint32(hostileProfiles) {
		e.Create(o)
		e.Profile(o, hostileFacts(o), AllFields)
		e.Evaluate(o)
	}
	for i, text := range hostileDefinitions {
		n, err := segment.Parse([]byte(text), segment.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e.Define(fmt.Sprintf("s%d", i), n, 10, func(string) bool { return true })
	}
	return e
}

// nextChunk does what an engine asks for.
func nextChunk(t testing.TB, e *Engine) []byte {
	work, ok := e.Work(nothing)
	if !ok {
		return nil
	}
	if work.State != nil {
		l := NewLoader(work.State)
		for i := range 20 {
			l.Add(uint32(i%hostileProfiles), 99_999_000+int64(i), fmt.Appendf(nil, `{"p":%d,"d":"1970-01-02T03:00:00Z"}`, i))
		}
		chunk, _ := l.Chunk(60)
		return chunk
	}
	s := NewScanner(work.Scan)
	for o := range uint32(hostileProfiles) {
		s.Add(o, hostileFacts(o))
	}
	chunk, err := s.Chunk(true)
	if err != nil {
		t.Fatal(err)
	}
	return chunk
}

// image is all that an engine writes.
func image(t testing.TB, e *Engine) []byte {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	if err := e.Freeze(true).Write(w); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	return out.Bytes()
}

// exercise lets an engine live on for a while.
func exercise(e *Engine, properties string) {
	for o := range uint32(hostileProfiles) {
		e.Touch(o)
		e.Event(o, e.NowMs(), []byte("act"), []byte(properties))
		e.Profile(o, hostileFacts(o+1), AllFields)
		e.Evaluate(o)
		e.Advance(e.NowMs()+10_000_000, 3)
	}
	e.Touch(0)
	e.Touch(1)
	e.Merge(0, 1)
	e.Profile(0, hostileFacts(0), AllFields)
	e.Evaluate(0)
	e.Continue(1000)
	for id := range e.segments {
		if e.Live(id) {
			e.Count(id, e.NowMs()+1_000_000)
			e.Page(id, 0, 10, e.NowMs()+200_000_000)
		}
		e.Progress(id)
	}
	e.Stats()
	_ = e.Hash(func([]byte) {})
}

// TestHostileDefinitionsAreBuilt tells that the chunks that are damaged below
// are right before.
func TestHostileDefinitionsAreBuilt(t *testing.T) {
	e := hostileEngine(t)
	for range 1000 {
		c := nextChunk(t, e)
		if c == nil {
			break
		}
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
		was := image(t, e)
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil || !bytes.Equal(image(t, e), was) {
			t.Fatalf("a chunk that comes twice changes something, or %v", err)
		}
	}
	e.Continue(1000)
	for i := range hostileDefinitions {
		if id := fmt.Sprintf("s%d", i); !e.Live(id) {
			t.Errorf("%s is not live", id)
		}
	}
	exercise(e, `{"p":1}`)
}

// loadHostile loads a chunk of any bytes after some that are right.
func loadHostile(t *testing.T, before uint8, chunk []byte) {
	e := hostileEngine(t)
	for range before % 32 {
		c := nextChunk(t, e)
		if c == nil {
			break
		}
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
	}
	was := image(t, e)
	err := e.Load(chunk, func(o uint32) uint32 { return o % 1000 })
	if err != nil {
		if !errors.Is(err, ErrChunk) {
			t.Fatalf("refused with %v", err)
		}
		if !bytes.Equal(image(t, e), was) {
			t.Fatalf("a chunk that is refused (%v) changes the engine", err)
		}
		return
	}
	exercise(e, `{"p":2,"d":"1970-01-02T03:00:00Z"}`)
}

// stride leaves out most of what is behind the head, unless there is time.
func stride(i int) int {
	if i < 30 || testlevel.Long() {
		return 1
	}
	return testlevel.Count(29, 11)
}

// TestLoadRefusesDamage damages the bytes of every chunk, cuts it, and continues.
func TestLoadRefusesDamage(t *testing.T) {
	e := hostileEngine(t)
	for before := uint8(0); ; before++ {
		c := nextChunk(t, e)
		if c == nil {
			break
		}
		for i := 0; i < len(c); i += stride(i) {
			for _, x := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(c)
				bad[i] ^= x
				if i < 40 || x == 1 {
					loadHostile(t, before, bad)
				}
			}
		}
		loadHostile(t, before, c[:len(c)-1])
		loadHostile(t, before, append(bytes.Clone(c), 0))
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoadRefusesTimesWithoutBound: a window added to a time stays a time.
func TestLoadRefusesTimesWithoutBound(t *testing.T) {
	far, from := int64(1)<<56+1, appendTime(nil, 99_999_000) // far is beyond the times that are taken from outside
	for _, c := range []struct {
		s fold.Spec
		v []byte
	}{
		{fold.Spec{Kind: fold.KindTimes, WindowMs: 10, Keep: 8}, appendTime(from, far)},
		{fold.Spec{Kind: fold.KindSums, WindowMs: 10}, appendTime(appendTime(make([]byte, 24), far), 0)},
		{fold.Spec{Kind: fold.KindMin, WindowMs: 10}, appendTime(appendTime(nil, -far), 0)},
		{fold.Spec{Kind: fold.KindMax, WindowMs: 10}, appendTime(appendTime(nil, far), 0)},
		{fold.Spec{Kind: fold.KindDistinct, WindowMs: 10, Keep: 2}, appendTime(make([]byte, 16), far)},
		{fold.Spec{Kind: fold.KindSpans}, append(appendTime(appendTime(nil, -far), 0), make([]byte, 25)...)},
		{fold.Spec{Kind: fold.KindSpans}, append(appendTime(appendTime(nil, 0), far), make([]byte, 25)...)},
	} {
		if c.s.New().Valid(c.v) {
			t.Errorf("%s takes %x", c.s.Kind, c.v)
		}
	}
}

// FuzzLoad: no chunk makes Load panic, and one that is refused changes nothing.
func FuzzLoad(f *testing.F) {
	e := hostileEngine(f)
	for before := uint8(0); ; before++ {
		c := nextChunk(f, e)
		if c == nil {
			break
		}
		f.Add(before, c)
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, before uint8, chunk []byte) { loadHostile(t, before, chunk) })
}

// readHostile reads a file of any bytes and lets what comes of it live on.
func readHostile(t *testing.T, file []byte) {
	r := NewRestorer()
	in := bufio.NewReader(bytes.NewReader(file))
	if err := r.Read(in); err != nil {
		if len(file) > 0 && errors.Is(err, io.EOF) {
			t.Fatalf("a file that is cut ends with %v", err)
		}
		return
	}
	_ = r.Read(in) // a delta may follow
	universe := roaring.New()
	universe.AddRange(0, hostileProfiles)
	e, err := r.Engine(universe)
	if err != nil {
		return
	}
	e.Advance(e.NowMs()+1000, 10)
	for range 3 {
		if c := nextChunk(t, e); c != nil {
			_ = e.Load(c, func(o uint32) uint32 { return o })
		}
	}
	exercise(e, `{"p":3}`)
	image(t, e)
}

// hostileFiles are right: of engines that are not built, partly, and wholly.
func hostileFiles(t testing.TB) (files [][]byte) {
	e := hostileEngine(t)
	for i := 0; ; i++ {
		if i%6 == 0 {
			files = append(files, image(t, e))
		}
		c := nextChunk(t, e)
		if c == nil {
			break
		}
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
	}
	e.Continue(3)
	return append(files, image(t, e))
}

// TestRestoreRefusesDamage damages the bytes of files and cuts them.
func TestRestoreRefusesDamage(t *testing.T) {
	for _, file := range hostileFiles(t) {
		for i := 0; i < len(file); i += stride(i) {
			bad := bytes.Clone(file)
			bad[i] ^= []byte{1, 0x10, 0x80, 0xff}[i%4]
			readHostile(t, bad)
			readHostile(t, file[:i])
		}
	}
}

// TestRestoreRefusesWhatDoesNotGoTogether edits catalogs.
func TestRestoreRefusesWhatDoesNotGoTogether(t *testing.T) {
	files := hostileFiles(t)
	file := files[len(files)-1]
	for _, c := range []struct {
		name string
		edit func(c *catalog)
	}{
		{"time", func(c *catalog) { c.NowMs = -1 }},
		{"next number", func(c *catalog) { c.NextID = 3 }},
		{"number twice", func(c *catalog) { c.Leaves[1].ID = c.Leaves[0].ID }},
		{"no state", func(c *catalog) { c.Leaves[0].State = 0 }},
		{"another's state", func(c *catalog) { c.Leaves[0].State, c.Leaves[1].State = c.Leaves[1].State, c.Leaves[0].State }},
		{"state without events", func(c *catalog) { c.States[0].Source = nil }},
		{"state of another type", func(c *catalog) {
			c.States[0].Source = bytes.Replace(c.States[0].Source, []byte("act"), []byte("cat"), 1)
		}},
		{"unknown fold", func(c *catalog) { c.States[0].Spec.Kind = "x" }},
		{"keeps nothing", func(c *catalog) { c.States[1].Spec.Keep = 0 }},
		{"narrower window", func(c *catalog) { c.States[1].Spec.WindowMs = 1 }},
		{"not built", func(c *catalog) { c.Leaves[0].Ready = false }},
		{"state not built", func(c *catalog) { c.States[0].Live = false }},
		{"leaf without user", func(c *catalog) { c.Segments = c.Segments[1:8] }},
		{"segment twice", func(c *catalog) { c.Segments[1].ID = c.Segments[0].ID }},
		{"no definition", func(c *catalog) { c.Segments[0].Live, c.Segments[0].Next = nil, nil }},
		{"circle", func(c *catalog) { c.Segments[0].Live = []byte(`{"kind":"segment","segment_id":"s8"}`) }},
		{"refers to itself", func(c *catalog) { c.Segments[0].Live = []byte(`{"kind":"segment","segment_id":"s0"}`) }},
		{"refers to nothing", func(c *catalog) { c.Segments[0].Next = []byte(`{"kind":"segment","segment_id":"s99"}`) }},
		{"refers to one not live", func(c *catalog) { c.Segments[0].Live, c.Segments[0].Next = nil, c.Segments[0].Live }},
		{"negated leaf", func(c *catalog) {
			c.Leaves[0].Node = bytes.Replace(c.Leaves[0].Node, []byte(`"count"`), []byte(`"did":false,"count"`), 1)
		}},
		{"group for a leaf", func(c *catalog) { c.Leaves[0].Node = []byte(hostileDefinitions[7]) }},
		{"new leaf", func(c *catalog) { c.Segments[0].Next = []byte(`{"kind":"list","list_id":"other"}`) }},
	} {
		r := NewRestorer()
		if err := r.Read(bufio.NewReader(bytes.NewReader(file))); err != nil {
			t.Fatal(err)
		}
		universe := roaring.New()
		universe.AddRange(0, hostileProfiles)
		c.edit(&r.catalog)
		if _, err := r.Engine(universe); err == nil {
			t.Errorf("%s: taken", c.name)
		}
	}
}

// FuzzRestore: no file makes a Restorer panic, nor the engine that comes of it.
func FuzzRestore(f *testing.F) {
	for _, file := range hostileFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) { readHostile(t, file) })
}

// TestLoadRefusesWhatIsOutOfPlace: chunks whose parts are right and do not go
// together are refused.
func TestLoadRefusesWhatIsOutOfPlace(t *testing.T) {
	e := hostileEngine(t)
	kinds := map[byte]bool{}
	for {
		c := nextChunk(t, e)
		if c == nil {
			break
		}
		kinds[c[0]] = true
		from := 1 // where its bounds are
		if c[0] == chunkState {
			from = 5
		}
		edit := func(name string, fn func(c []byte) []byte) {
			was := image(t, e)
			if err := e.Load(fn(bytes.Clone(c)), func(o uint32) uint32 { return o }); !errors.Is(err, ErrChunk) || !bytes.Equal(image(t, e), was) {
				t.Errorf("%s, kind %d: %v", name, c[0], err)
			}
		}
		edit("too many bytes", func(c []byte) []byte { return append(c, 0) })
		edit("too few bytes", func(c []byte) []byte { return c[:len(c)-1] })
		edit("ends before it begins", func(c []byte) []byte {
			c[from+8] = 0
			copy(c[from+4:], c[from:from+4])
			return c
		})
		edit("the last, with an end", func(c []byte) []byte {
			c[from+8] = 1
			copy(c[from+4:], []byte{99, 0, 0, 0})
			return c
		})
		edit("not the last, without an end", func(c []byte) []byte {
			c[from+8] = 0
			copy(c[from+4:], []byte{255, 255, 255, 255})
			return c
		})
		if c[0] == chunkScan { // of a state, it is one that does not continue
			edit("begins behind its profiles", func(c []byte) []byte {
				copy(c[from:], []byte{77, 0, 0, 0})
				return c
			})
		}
		if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != 2 {
		t.Fatalf("chunks of %d kinds", len(kinds))
	}
}

// TestScannerGoesOn: one scanner makes chunk after chunk, each of what was added
// since the last.
func TestScannerGoesOn(t *testing.T) {
	for _, size := range []int{1, 2, hostileProfiles} {
		e := hostileEngine(t)
		whole := hostileEngine(t)
		for _, x := range []*Engine{e, whole} {
			for work, ok := x.Work(nothing); ok && work.State != nil; work, ok = x.Work(nothing) {
				if err := x.Load(nextChunk(t, x), func(o uint32) uint32 { return o }); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := whole.Load(nextChunk(t, whole), func(o uint32) uint32 { return o }); err != nil {
			t.Fatal(err)
		}
		work, _ := e.Work(nothing)
		s := NewScanner(work.Scan)
		for o := range uint32(hostileProfiles) {
			s.Add(o, hostileFacts(o))
			if last := o == hostileProfiles-1; last || int(o)%size == size-1 {
				c, err := s.Chunk(last)
				if err != nil {
					t.Fatal(err)
				}
				if len(c) > 400 || s.Size() != 0 {
					t.Errorf("a chunk has %d bytes", len(c))
				}
				if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !bytes.Equal(image(t, e), image(t, whole)) {
			t.Errorf("chunks of %d profiles make another engine than one chunk", size)
		}
	}
}

// TestFrozenStaysAsItWas (R1): what is written is the engine as it was frozen,
// however it changes before; and a restored engine has nothing new to write.
func TestFrozenStaysAsItWas(t *testing.T) {
	for built := range 2 {
		e := hostileEngine(t)
		for c := nextChunk(t, e); built == 1 && c != nil; c = nextChunk(t, e) {
			if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
				t.Fatal(err)
			}
		}
		f := e.Freeze(true)
		was := write(t, f)
		f = e.Freeze(true)
		exercise(e, `{"p":5,"d":"1970-01-02T03:00:00Z"}`)
		if !bytes.Equal(write(t, f), was) {
			t.Error("what was frozen changes with the engine")
		}
		r := NewRestorer()
		if err := r.Read(bufio.NewReader(bytes.NewReader(was))); err != nil {
			t.Fatal(err)
		}
		universe := roaring.New()
		universe.AddRange(0, hostileProfiles)
		restored, err := r.Engine(universe)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range restored.Freeze(false).groups {
			if len(x.changed) != 0 {
				t.Error("a restored engine has values to write that are written")
			}
		}
		f = restored.Freeze(true)
		exercise(restored, `{"p":5,"d":"1970-01-02T03:00:00Z"}`)
		if !bytes.Equal(write(t, f), was) {
			t.Error("what was frozen of a restored engine changes with it")
		}
	}
}

func appendTime(b []byte, ms int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(ms)) }
