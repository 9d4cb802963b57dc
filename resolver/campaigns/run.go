package campaigns

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
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

// touch notes that a run has changed since the last checkpoint.
func (s *State) touch(r *Run) {
	if !r.dirty {
		r.dirty = true
		s.dirty = append(s.dirty, r)
	}
}

// run finds the run a command speaks of, nil when that is over.
func (s *State) run(id string, number int) (*Campaign, *Run) {
	if r := s.runs[id]; r.Busy() && r.Run == number {
		return s.campaigns[id], r
	}
	return nil, nil
}

func runOver() *refuse.Refusal {
	return refuse.Conflicts("", "this run of the campaign is over")
}

// stopRun ends a run before its end. What is pending costs its credit until its outcome is
// recorded, or the next start; see returnCredits.
func (s *State) stopRun(tx *feature.Tx, r *Run, reason string) {
	x := s.campaigns[r.ID]
	s.leaveWait(x, r)
	s.dropHeld(x, r)
	r.stop(tx.AtMs, reason)
	s.dropContents(r)
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

// Sending reports whether a run of a campaign goes on.
func (s *State) Sending(id string, number int) bool {
	_, r := s.run(id, number)
	return r != nil
}

// Run is the present or last run of a campaign.
func (s *State) Run(id string) (Run, bool) {
	r := s.runs[id]
	if r == nil {
		return Run{}, false
	}
	c := *r
	c.Links, c.Held = slices.Clone(r.Links), slices.Clone(r.Held)
	c.Skipped, c.Errors, c.ByLink, c.VariantOf = maps.Clone(r.Skipped), slices.Clone(r.Errors), slices.Clone(r.ByLink), slices.Clone(r.VariantOf)
	if r.AB != nil {
		ab := *r.AB
		c.AB = &ab
	}
	c.ByChannel = slices.Clone(r.ByChannel)
	for i := range c.ByChannel {
		c.ByChannel[i].Skipped = maps.Clone(c.ByChannel[i].Skipped)
	}
	return c, true
}
