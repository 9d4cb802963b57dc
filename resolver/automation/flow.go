package automation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The statuses of a flow.
const (
	Draft  = "draft"
	Live   = "live"
	Paused = "paused"
)

// PausedForCredits is the [Flow.PausedFor] of a flow that was paused because the
// account ran out of e-mail credits. It continues when there are some again.
const PausedForCredits = "credits"

// The bounds of flows. They are part of the rules: changing one changes what Apply does and
// needs a new version of the state machine's rules.
const (
	maxFlows      = 1000 // of an account
	maxFlowNumber = 100_000
	// MaxDepth is how many enrolments may start each other at one instant.
	MaxDepth = 16
	// MaxPauses is how many pauses a flow remembers, beside the last.
	MaxPauses = 64
	// maxEventBytes bounds what is kept of what started a flow; larger properties are not
	// kept.
	maxEventBytes = 16 << 10
)

// First versions of the state machine's rules.
const (
	rulesLookAgain   = 24 // conditions are looked at again before a step that was held up
	rulesIM          = 25 // steps send by the account's own instant messenger
	rulesFailedCount = 24 // every message of an omnichannel step that fails counts
	rulesOpenCart    = 25 // conditions may ask for an open cart
	rulesTemplates   = 25 // templates of WhatsApp have named parameters, kinds of headers and buttons
)

// Flow is a flow as it is saved. Saved ones are replaced, never changed.
type Flow struct {
	ID     string `json:"id"`
	Number uint32 `json:"number"` // dense, in keys instead of the id
	Status string `json:"status"`
	// Definition is in canonical form.
	Definition json.RawMessage `json:"definition"`
	// Publishing drafts go live when the conditions of their steps are built.
	Publishing bool `json:"publishing,omitempty"`
	// PublishError says why a draft did not go live after all.
	PublishError string `json:"publish_error,omitempty"`
	PausedFor    string `json:"paused_for,omitempty"` // empty when a user paused it
	CreatedMs    int64  `json:"created_ms"`
	UpdatedMs    int64  `json:"updated_ms"`
	PublishedMs  int64  `json:"published_ms,omitempty"`
	PausedMs     int64  `json:"paused_ms,omitempty"` // when it was last
	ResumedMs    int64  `json:"resumed_ms,omitempty"`
	// Pauses are those before the last that dates may have been due in which are not
	// worked off yet, in order.
	Pauses []Pause `json:"pauses,omitempty"`
	CopyOf string  `json:"copy_of,omitempty"`
	// ScanFrom is the first profile that was not looked at for its date, while
	// Scanning.
	ScanFrom uint32 `json:"scan_from,omitempty"`
	Scanning bool   `json:"scanning,omitempty"`
	// Deleted flows keep their number. Their enrolments go bit by bit.
	Deleted bool `json:"deleted,omitempty"`
}

// Pause is when a flow was paused: dates that were due then are missed, however
// late they are come to.
type Pause struct {
	FromMs  int64 `json:"from_ms"`
	UntilMs int64 `json:"until_ms"` // it was live again
}

// Counts count what became of those who entered a flow.
type Counts struct {
	Entered   uint64 `json:"entered"`
	Completed uint64 `json:"completed"`
	Exited    uint64 `json:"exited"`
	// LoopsCut are enrolments that did not begin because too many started each
	// other at one instant, or the service itself had caused too many of the
	// profile in that minute.
	LoopsCut uint64      `json:"loops_cut,omitempty"`
	Steps    []StepCount `json:"steps"`
}

// StepCount counts what became of those who came to a step.
type StepCount struct {
	Arrived uint64 `json:"arrived"`
	At      uint64 `json:"at"` // are there now
	// Results are how often each [flows.Result] was met.
	Results map[flows.Result]uint64 `json:"results,omitempty"`
	// Channels count the messages of an omnichannel step, in its order; there are none until
	// a profile came to the step.
	Channels []ChannelCount `json:"channels,omitempty"`
}

// ChannelCount counts what became of messages of an omnichannel step on one channel.
type ChannelCount struct {
	Queued uint64 `json:"queued,omitempty"`
	// Failed are messages that failed after they were queued. Of those that may have gone out
	// all the same only the ones count that failed under rules from 24 on.
	Failed uint64 `json:"failed,omitempty"`
	// Skipped is how many people were passed over, by the reason.
	Skipped map[flows.Result]uint64 `json:"skipped,omitempty"`
}

// left counts an enrolment that has left a step.
func (c *Counts) left(step int, r flows.Result) {
	s := &c.Steps[step]
	s.At--
	if s.Results == nil {
		s.Results = map[flows.Result]uint64{}
	}
	s.Results[r]++
}

// returned takes back that an enrolment came to a step, and left it with a result other than
// [flows.Pending].
func (c *Counts) returned(step int, r flows.Result) {
	s := &c.Steps[step]
	s.Arrived--
	if r == flows.Pending {
		s.At--
		return
	}
	if s.Results[r]--; s.Results[r] == 0 {
		delete(s.Results, r)
	}
}

// flow is a flow with what belongs to it in memory: a few bytes for each
// profile in it. The rest is in the store, a [flows.Record] for each profile.
type flow struct {
	*Flow
	def     *flows.Flow
	counts  Counts
	dirty   bool            // counts have changed in this generation
	known   *roaring.Bitmap // profiles with a record
	entered *roaring.Bitmap // profiles with an enrolment in the flow
	active  *roaring.Bitmap // those whose enrolment is in progress
	timers  dueset.Set      // enrolments in progress that continue by themselves
	dates   dueset.Set      // when the date trigger is due
	// pending are to be enrolled, because the trigger's segment had them when the
	// flow went live, or because they came while it was paused.
	pending *profile.OrdinalSet
	// about is what the events of the flow say, also encoded.
	about        map[string]any
	aboutEncoded []byte
}

func (f *flow) describe() {
	f.about = map[string]any{"flow_id": f.ID, "flow_name": f.def.Name}
	f.aboutEncoded = must.PlainJSON(f.about)
}

// Version names the flow's content, see [Save].
func (f *Flow) Version() string { return feature.Version(string(f.Definition)) }

// pendingSet names the set [flow.pending].
func pendingSet(number uint32) string {
	return "flow/" + strconv.FormatUint(uint64(number), 10) + "/pending"
}

// conditionPrefix begins the ids of the segments that conditions of flows are to
// the engine. No API shows them.
const conditionPrefix = "flow/"

// IsCondition reports whether a segment of the engine is the condition of a flow's step,
// which is none of the account's segments.
func IsCondition(segmentID string) bool { return strings.HasPrefix(segmentID, conditionPrefix) }

func conditionID(f *Flow, step int) string {
	return conditionPrefix + f.ID + "/" + strconv.Itoa(step)
}

// sortByAge sorts flows, the oldest first; of equally old ones by id, as pages do.
func sortByAge(list []*flow) {
	slices.SortFunc(list, func(x, y *flow) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

// ID names a flow.
type ID struct {
	ID string `json:"id"`
}

// Reply says what became of a flow.
type Reply struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Publishing bool   `json:"publishing,omitempty"`
}

func replyOf(f *flow) Reply { return Reply{f.ID, f.Status, f.Publishing} }

func noFlow() *refuse.Refusal { return refuse.NotFound("id", "there is no flow with this id") }
