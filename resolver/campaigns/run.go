package campaigns

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The commands with which a campaign is sent.
const (
	CommandStart  = "campaign.start.2"
	CommandBatch  = "campaign.batch"
	CommandResult = "campaign.result.2"
	CommandFinish = "campaign.finish"
	CommandResume = "campaign.resume"

	// CommandStart1 is [CommandStart] in logs of before runs were kept: the
	// run that is over is not put on record.
	CommandStart1 = "campaign.start"
	// CommandResult1 is [CommandResult] in logs of before the events of messages had the
	// recipient's domain.
	CommandResult1 = "campaign.result"
)

const (
	maxBatch     = 1000 // recipients a batch
	maxLooked    = 4000 // recipients looked at for a batch: those who may not be sent to take time, too
	maxRunErrors = 20   // errors remembered
	maxErrorText = 500
	maxVariants  = 10
)

// The statuses of a run.
const (
	RunSending = "sending"
	RunTesting = "testing" // an A/B test waits for its winner
	// RunWaiting is that of a run which waits until an instant: nobody can be sent to before,
	// because of quiet hours, of local times, or of the campaign's rate.
	RunWaiting = "waiting"
	RunDone    = "sent"
	RunStopped = "stopped"
)

// Run is a campaign being sent, or the last time it was.
type Run struct {
	ID             string         `json:"id"`
	Run            int            `json:"run"` // from 1
	Status         string         `json:"status"`
	ListIDs        []string       `json:"list_ids"`
	SegmentIDs     []string       `json:"segment_ids"`
	TemplateSource string         `json:"template_source,omitempty"`
	TemplateID     string         `json:"template_id,omitempty"`
	BatchSize      int            `json:"batch_size"`
	DelayMs        int64          `json:"delay_ms"`
	StartedMs      int64          `json:"started_ms"`
	FinishedMs     int64          `json:"finished_ms,omitempty"`
	Resumed        int            `json:"resumed,omitempty"` // how often it went on after a stop of the service
	Total          uint64         `json:"total"`             // recipients at the start
	Sent           uint64         `json:"sent"`              // of this run
	Failed         uint64         `json:"failed"`
	Skipped        map[string]int `json:"skipped,omitempty"` // reason → recipients who may not be sent to
	Errors         []string       `json:"errors,omitempty"`
	AB             *ABTest        `json:"ab,omitempty"`
	Variants       int            `json:"variants"`
	// Returned is how many pending messages have no credit any more: it was given
	// back when the run was stopped.
	Returned uint64 `json:"returned,omitempty"`
	// Members is how many the lists and segments had, for push.
	Members uint64 `json:"members,omitempty"`

	// Over all runs.
	Opens     uint64          `json:"opens"` // with repeats
	Clicks    uint64          `json:"clicks"`
	ByLink    []uint64        `json:"by_link,omitempty"`
	Accepted  uint64          `json:"accepted,omitempty"` // devices, for push
	Retired   uint64          `json:"retired,omitempty"`
	Devices   uint64          `json:"devices,omitempty"` // addressed
	VariantOf []VariantCounts `json:"variant_of,omitempty"`

	// Channels are those of a campaign of several channels at the start: a message's variant
	// is the place of its channel among them. ByChannel are counts by the same place, and
	// may be shorter.
	Channels  []string        `json:"channels,omitempty"`
	ByChannel []ChannelCounts `json:"by_channel,omitempty"`

	// Past are the runs before this one, the oldest first; see [State.keepRun].
	Past []PastRun `json:"past,omitempty"`

	// WallMs is the time at which people are sent to by their own clocks, in Unix ms as if it
	// was of UTC; 0 for a run that does not look at them.
	WallMs int64 `json:"wall_ms,omitempty"`
	// Held are the instants at which people are looked at again who were put aside, ascending.
	Held []int64 `json:"held,omitempty"`
	// WakeMs is when a run with [RunWaiting] goes on. Woken says that it has, and that nothing
	// of it was under way.
	WakeMs int64 `json:"wake_ms,omitempty"`
	Woken  bool  `json:"woken,omitempty"`
	// NextUs is the instant of the campaign's next message by its rate, in Unix µs.
	NextUs int64 `json:"next_us,omitempty"`

	// Links is how many links each variant has.
	Links []int `json:"links,omitempty"`
	// ContentBytes and LinkBytes are what is stored of the contents, see [State.keepContents].
	ContentBytes int `json:"content_bytes,omitempty"`
	LinkBytes    int `json:"link_bytes,omitempty"`

	dirty bool
}

// Busy reports whether the run goes on.
func (r *Run) Busy() bool {
	return r != nil && (r.Status == RunSending || r.Status == RunTesting || r.Status == RunWaiting)
}

func runOver() *refuse.Refusal {
	return refuse.Conflicts("", "this run of the campaign is over")
}

// stop ends a run before its end.
func (r *Run) stop(nowMs int64, reason string) {
	r.Status, r.FinishedMs = RunStopped, nowMs
	r.note(reason)
}

// note remembers an error, once.
func (r *Run) note(text string) {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	if len(r.Errors) < maxRunErrors && !slices.Contains(r.Errors, text) {
		r.Errors = append(r.Errors, text)
	}
}

// ABTest says how a winner is found among the variants.
type ABTest struct {
	Percent int    `json:"percent"` // of the audience the variants are tried on, 1 to 100
	Metric  string `json:"metric"`  // opens or clicks
	WaitMs  int64  `json:"wait_ms"` // from the last message of the test to the choice
	// EndsMs is when the winner is chosen; 0 while the test is being sent.
	EndsMs int64 `json:"ends_ms,omitempty"`
	// Winner is the variant that goes to the rest, −1 before the choice.
	Winner int `json:"winner"`
	// Tested is how many recipients the test has in all.
	Tested uint64 `json:"tested"`
}

// VariantCounts are those of one variant of an A/B test. Recipients count once.
type VariantCounts struct {
	Sent    uint64 `json:"sent"`
	Opened  uint64 `json:"opened"`
	Clicked uint64 `json:"clicked"`
}

// ChannelCounts are what became of people on one channel of a run.
type ChannelCounts struct {
	// Failed is how many messages could not be handed over. Where the failure was final, the
	// person's next channel was tried.
	Failed uint64 `json:"failed,omitempty"`
	// Skipped is how many people were passed over on this channel, by reason, for the next one.
	Skipped map[string]int `json:"skipped,omitempty"`
}

// skip counts a person that the channel does not reach.
func (c *ChannelCounts) skip(reason string) { countReason(&c.Skipped, reason) }

// skip counts a person that the run passes over.
func (r *Run) skip(reason string) { countReason(&r.Skipped, reason) }

// countReason counts one more person under a reason.
func countReason(counts *map[string]int, reason string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[reason]++
}

// PastRun is the record of a run that another one has followed.
type PastRun struct {
	Run            int            `json:"run"`
	Status         string         `json:"status"`
	ListIDs        []string       `json:"list_ids,omitempty"`
	SegmentIDs     []string       `json:"segment_ids,omitempty"`
	TemplateSource string         `json:"template_source,omitempty"`
	TemplateID     string         `json:"template_id,omitempty"`
	StartedMs      int64          `json:"started_ms"`
	FinishedMs     int64          `json:"finished_ms,omitempty"`
	Total          uint64         `json:"total"`
	Sent           uint64         `json:"sent"`
	Failed         uint64         `json:"failed"`
	Skipped        map[string]int `json:"skipped,omitempty"`
	Errors         []string       `json:"errors,omitempty"`
	// Bounced is how many of the failed have an address that does not exist.
	Bounced uint64 `json:"bounced,omitempty"`
}
