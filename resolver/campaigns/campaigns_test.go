package campaigns

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// world is an account without the machine.
type world struct {
	t     *testing.T
	state *State
	host  *fakeHost
	now   int64
	seq   uint64
}

// fakeHost has lists, and profiles that can all be reached.
type fakeHost struct {
	next     uint32
	sets     *profile.OrdinalSets
	lists    map[string]*roaring.Bitmap
	credits  int64
	building string // a segment that is being built
	epoch    uint64
	told     []map[string]any // events queued for webhooks
	recorded []Report
	// unreachable is why profiles are not reached, by medium.
	unreachable map[string]map[uint32]string
	root        map[uint32]uint32 // of profiles that were merged into others
	// limits judges messages, nil lets all go out. counted are the messages that count.
	limits  func(ordinal uint32, medium string) (untilMs int64, reason string)
	counted map[uint32]string
	// aheadMs is how far the clocks of people are ahead of UTC.
	aheadMs map[uint32]int64
}

func (h *fakeHost) NextNumber() uint32                              { return h.next }
func (h *fakeHost) TakeNumber(number uint32)                        { h.next = max(h.next, number+1) }
func (h *fakeHost) SaveNumbers()                                    {}
func (h *fakeHost) HasList(id string) bool                          { return h.lists[id] != nil }
func (h *fakeHost) HasSegment(id string) bool                       { return id == h.building }
func (h *fakeHost) ListMembers(id string) *roaring.Bitmap           { return h.lists[id] }
func (h *fakeHost) Contacts() *roaring.Bitmap                       { return roaring.New() }
func (h *fakeHost) DeviceOwners() *roaring.Bitmap                   { return roaring.New() }
func (h *fakeHost) Set(name string) *profile.OrdinalSet             { return h.sets.Set(name) }
func (h *fakeHost) Members(name string) *roaring.Bitmap             { return h.sets.Members(name) }
func (h *fakeHost) DropSet(name string)                             { h.sets.Drop(name, func(uint16) {}) }
func (h *fakeHost) Record(r Report)                                 { h.recorded = append(h.recorded, r) }
func (h *fakeHost) EmailCredits() int64                             { return h.credits }
func (h *fakeHost) SpendCredits(n int64)                            { h.credits -= n }
func (h *fakeHost) TemplateUsers(string) string                     { return "" }
func (h *fakeHost) ConfirmTemplate() string                         { return "" }
func (h *fakeHost) MayBeSender(string) *refuse.Refusal              { return nil }
func (h *fakeHost) Notify(_ string, data map[string]any)            { h.told = append(h.told, data) }
func (h *fakeHost) SegmentMembers(string) (*roaring.Bitmap, string) { return nil, h.building }

func (h *fakeHost) Uncount(ordinal, _ uint32)       { delete(h.counted, ordinal) }
func (h *fakeHost) AccountLocal(wallMs int64) int64 { return wallMs }

func (h *fakeHost) Local(ordinal uint32, wallMs int64) int64 { return wallMs - h.aheadMs[ordinal] }

func (h *fakeHost) Count(ordinal uint32, medium string, _ uint32) {
	if h.counted == nil {
		h.counted = map[uint32]string{}
	}
	h.counted[ordinal] = medium
}

func (h *fakeHost) MayGo(ordinal uint32, medium string, _ uint32) (untilMs int64, reason string) {
	if h.limits == nil {
		return 0, ""
	}
	return h.limits(ordinal, medium)
}

func (h *fakeHost) GiveBack(medium string, n uint64) {
	if medium == mediumEmail {
		h.credits += int64(n)
	}
}

func (h *fakeHost) Root(ordinal uint32) uint32 {
	if root, ok := h.root[ordinal]; ok {
		return root
	}
	return ordinal
}

func (h *fakeHost) Reach(ordinal uint32, media []string) ([]string, []profile.MergedProfile) {
	reasons := make([]string, len(media))
	for i, medium := range media {
		reasons[i] = h.unreachable[medium][ordinal]
	}
	var merged []profile.MergedProfile
	for o, root := range h.root {
		if root == ordinal {
			merged = append(merged, profile.MergedProfile{Ordinal: o})
		}
	}
	return reasons, merged
}

func (h *fakeHost) NoteOutcome(uint32) {}

func (h *fakeHost) CheckEpoch(epoch uint64) *refuse.Refusal {
	if epoch != h.epoch {
		return refuse.Conflicts("epoch", "another epoch")
	}
	return nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := state.Open(vfs.NewMem(), "live", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.DB.Close() })
	h := &fakeHost{sets: profile.NewOrdinalSets(), lists: map[string]*roaring.Bitmap{}, credits: 1000}
	return &world{t: t, now: 1_000_000_000_000, host: h, state: New(7, NewShared(store), h)}
}

func (w *world) tx() *feature.Tx {
	w.seq++
	tx := &feature.Tx{Account: 7, AtMs: w.now, Offset: int64(w.seq), Store: w.state.shared.Store}
	binary.LittleEndian.PutUint64(tx.Record[:], w.seq)
	return tx
}

// list makes a list of profiles.
func (w *world) list(id string, profiles ...uint32) string {
	w.host.lists[id] = roaring.BitmapOf(profiles...)
	return id
}

// do carries a command out and reads its answer into out, which may be nil.
func (w *world) do(name string, args, out any) {
	w.t.Helper()
	tx := w.tx()
	if refusal, err := Commands[name](w.state, tx, must.JSON(args)); err != nil || refusal != nil {
		w.t.Fatal(name, refusal, err)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(must.JSON(tx.Reply), out); err != nil {
		w.t.Fatal(err)
	}
}

// refuses carries a command out that is refused.
func (w *world) refuses(want, name string, args any) {
	w.t.Helper()
	refusal, err := Commands[name](w.state, w.tx(), must.JSON(args))
	if err != nil || refusal == nil || !strings.Contains(refusal.Message, want) {
		w.t.Fatalf("%s: %v, %v; expected %q", name, refusal, err, want)
	}
}

func (w *world) saved(c Save) (x Campaign) {
	w.t.Helper()
	w.do(CommandSave, c, &x)
	return x
}

func (w *world) campaign() Campaign {
	w.t.Helper()
	return w.saved(Save{Campaign: Campaign{Name: "news", Channel: ChannelSingle, Type: TypeEmail, Date: "2026-01-01"}})
}

func (w *world) start(c Start) (r Run) {
	w.t.Helper()
	if c.BatchSize == 0 {
		c.BatchSize = 10
	}
	c.Variants = []Content{{Subject: "s", Sender: "news@x.io", Links: []string{"https://a", "https://b"}}}
	w.do(CommandStart, c, &r)
	return r
}

func (w *world) batch(id string, run int) (b BatchReply) {
	w.t.Helper()
	w.do(CommandBatch, Batch{ID: id, Run: run}, &b)
	return b
}

// checked hashes the state, which compares what is derived with the campaigns.
func (w *world) checked() {
	w.t.Helper()
	if err := w.state.Hash(func([]byte) {}); err != nil {
		w.t.Fatal(err)
	}
}
