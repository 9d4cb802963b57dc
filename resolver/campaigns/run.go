package campaigns

import (
	"maps"
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
	// RunWaiting is that of a run which waits until an instant: no recipient can be sent to
	// before, because of quiet hours, of local times, or of the campaign's rate.
	RunWaiting = "waiting"
	RunDone    = "sent"
	RunStopped = "stopped"
)

// Run is a campaign being sent, or the last time it was. Its JSON has the fields of its
// parts beside its own, in this order: it is what checkpoints and the state's hash have.
type Run struct {
	ID     string `json:"id"`     // of the campaign
	Run    int    `json:"run"`    // from 1
	Status string `json:"status"` // one of RunSending and the others
	Plan
	StartedMs  int64 `json:"started_ms"`            // Unix ms, as is FinishedMs
	FinishedMs int64 `json:"finished_ms,omitempty"` // 0 while it is under way
	Resumed    int   `json:"resumed,omitempty"`     // how often it continued after a stop of the service
	RunCounts
	AB       *ABTest `json:"ab,omitempty"` // nil for a run without a test
	Variants int     `json:"variants"`     // how many contents an A/B test tries
	// Returned is how many pending messages have no credit any more: it was given
	// back when the run was stopped.
	Returned uint64 `json:"returned,omitempty"`
	// Members is how many the lists and segments had, for push.
	Members uint64 `json:"members,omitempty"`

	Responses

	// Channels are those of a campaign of several channels at the start: a message's variant
	// is the place of its channel among them. ByChannel are counts by the same place, and
	// may be shorter.
	Channels  []string        `json:"channels,omitempty"`
	ByChannel []ChannelCounts `json:"by_channel,omitempty"`

	// Past are the runs before this one, the oldest first; see [State.keepRun].
	Past []PastRun `json:"past,omitempty"`

	PacingState
	Stored

	// dirty says that the run changed since the last checkpoint.
	dirty bool
}

// Plan says what a run sends to whom, and in which steps.
type Plan struct {
	// The audience is the union of these.
	ListIDs    []string `json:"list_ids"`
	SegmentIDs []string `json:"segment_ids"`
	// The template of the message; both are "" for a message of the campaign's own.
	TemplateSource string `json:"template_source,omitempty"`
	TemplateID     string `json:"template_id,omitempty"`
	BatchSize      int    `json:"batch_size"` // recipients
	DelayMs        int64  `json:"delay_ms"`   // between two batches
}

// check says what is wrong with the steps; nil for nothing.
func (p *Plan) check() *refuse.Refusal {
	switch {
	case p.BatchSize < 1 || p.BatchSize > maxBatch:
		return refuse.Invalid("batch_size", "batch_size Input should be from 1 to %d", maxBatch)
	case p.DelayMs < 0 || p.DelayMs > 60_000:
		return refuse.Invalid("delay_between_batches", "delay_between_batches Input should be from 0.1 to 60")
	}
	return nil
}

// RunCounts are the outcomes of a run's recipients.
type RunCounts struct {
	Total   uint64         `json:"total"` // recipients at the start
	Sent    uint64         `json:"sent"`
	Failed  uint64         `json:"failed"`
	Skipped map[string]int `json:"skipped,omitempty"` // reason → recipients who may not be sent to
	Errors  []string       `json:"errors,omitempty"`
	// Anonymous says which of the errors name no person, a bit for each: they stay when a person
	// is erased.
	Anonymous uint32 `json:"anonymous_errors,omitempty"`
}

// note remembers an error, once, and whether it names no person.
func (c *RunCounts) note(text string, anonymous bool) {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	if len(c.Errors) < maxRunErrors && !slices.Contains(c.Errors, text) {
		if anonymous {
			c.Anonymous |= 1 << len(c.Errors)
		}
		c.Errors = append(c.Errors, text)
	}
}

// forget returns the counts without the errors that names holds of, and whether there were
// any. Those of views stay as they are.
func (c *RunCounts) forget(names func(string) bool) (x RunCounts, changed bool) {
	x = *c
	x.Errors, x.Anonymous = nil, 0
	for i, text := range c.Errors {
		if anonymous := c.Anonymous>>i&1 == 1; anonymous || !names(text) {
			x.note(text, anonymous)
		}
	}
	return x, len(x.Errors) != len(c.Errors)
}

// skip counts a person that the run passes over.
func (c *RunCounts) skip(reason string) { countReason(&c.Skipped, reason) }

// clone returns a copy that does not change with the run, with so many errors at most.
func (c *RunCounts) clone(errors int) RunCounts {
	x := *c
	x.Skipped, x.Errors = maps.Clone(c.Skipped), slices.Clone(c.Errors[:min(len(c.Errors), errors)])
	x.Anonymous &= 1<<len(x.Errors) - 1
	return x
}

// Responses are what people did with the messages of a campaign, over all its runs.
type Responses struct {
	Opens     uint64          `json:"opens"` // with repeats
	Clicks    uint64          `json:"clicks"`
	ByLink    []uint64        `json:"by_link,omitempty"`
	Accepted  uint64          `json:"accepted,omitempty"` // devices, for push
	Retired   uint64          `json:"retired,omitempty"`
	Devices   uint64          `json:"devices,omitempty"` // addressed
	VariantOf []VariantCounts `json:"variant_of,omitempty"`
}

// ofVariant finds the counts of a variant or makes them.
func (x *Responses) ofVariant(i int) *VariantCounts {
	i = min(max(i, 0), maxVariants)
	for len(x.VariantOf) <= i {
		x.VariantOf = append(x.VariantOf, VariantCounts{})
	}
	return &x.VariantOf[i]
}

// click counts a click on one of so many links.
func (x *Responses) click(link, links int) {
	x.ByLink = append(x.ByLink, make([]uint64, max(0, links-len(x.ByLink)))...)
	x.ByLink[link]++
}

// push counts the devices that one push message went to.
func (x *Responses) push(addressed, accepted, retired uint64) {
	x.Devices += addressed
	x.Accepted += accepted
	x.Retired += retired
}

// Busy reports whether the run continues.
func (r *Run) Busy() bool {
	return r != nil && (r.Status == RunSending || r.Status == RunTesting || r.Status == RunWaiting)
}

func runOver() *refuse.Refusal {
	return refuse.Conflicts("", "this run of the campaign is over")
}

// stop ends a run before its end.
func (r *Run) stop(nowMs int64, reason string, anonymous bool) {
	r.Status, r.FinishedMs = RunStopped, nowMs
	r.note(reason, anonymous)
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

// ChannelCounts are the outcomes of people on one channel of a run.
type ChannelCounts struct {
	// Failed is how many messages could not be handed over. Where the failure was final, the
	// person's next channel was tried.
	Failed uint64 `json:"failed,omitempty"`
	// Skipped is how many people were passed over on this channel, by reason, for the next one.
	Skipped map[string]int `json:"skipped,omitempty"`
}

// skip counts a person that the channel does not reach.
func (c *ChannelCounts) skip(reason string) { countReason(&c.Skipped, reason) }

// countReason counts one more person under a reason.
func countReason(counts *map[string]int, reason string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[reason]++
}

// PastRun is the record of a run that another one has followed.
type PastRun struct {
	Run            int      `json:"run"`
	Status         string   `json:"status"`
	ListIDs        []string `json:"list_ids,omitempty"`
	SegmentIDs     []string `json:"segment_ids,omitempty"`
	TemplateSource string   `json:"template_source,omitempty"`
	TemplateID     string   `json:"template_id,omitempty"`
	StartedMs      int64    `json:"started_ms"`
	FinishedMs     int64    `json:"finished_ms,omitempty"`
	RunCounts
	// Bounced is how many of the failed have an address that does not exist.
	Bounced uint64 `json:"bounced,omitempty"`
}

// Stored is the stored contents that a run was started with.
type Stored struct {
	// Links is how many links each variant has, with those of runs before that are kept.
	Links []int `json:"links,omitempty"`
	// OwnClicks says that clicks on each variant's links are counted apart. Those of an A/B test
	// were counted together, by number, before links were kept.
	OwnClicks bool `json:"own_clicks,omitempty"`
	// ContentBytes and LinkBytes are the lengths of what is stored, see [State.keepContents].
	ContentBytes int `json:"content_bytes,omitempty"`
	LinkBytes    int `json:"link_bytes,omitempty"`
}

// linksOf is how many click targets a variant has.
func (k *Stored) linksOf(variant int) int {
	if variant >= 0 && variant < len(k.Links) {
		return k.Links[variant]
	}
	return 0
}
