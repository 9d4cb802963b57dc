package resolver

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands with which a campaign is sent.
const (
	CommandCampaignStart  = "campaign.start.2"
	CommandCampaignBatch  = "campaign.batch"
	CommandCampaignResult = "campaign.result.2"
	CommandCampaignFinish = "campaign.finish"
	CommandCampaignResume = "campaign.resume"

	// commandCampaignStart1 is [CommandCampaignStart] in logs of before runs were kept: the
	// run that is over is not put on record.
	commandCampaignStart1 = "campaign.start"
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

// CampaignContent is what is sent: the campaign's own text or a template's, as
// of the start, with its links taken out for tracking.
type CampaignContent struct {
	Subject    string   `json:"subject"`
	HTML       string   `json:"html"`
	Text       string   `json:"text"`
	Sender     string   `json:"sender"`
	SenderName string   `json:"sender_name"`
	ReplyTo    string   `json:"reply_to"`
	Link       string   `json:"link,omitempty"`
	Links      []string `json:"links,omitempty"` // click targets by number
}

// CampaignStart begins to send a campaign.
type CampaignStart struct {
	ID             string   `json:"id"`
	ListIDs        []string `json:"list_ids"`
	SegmentIDs     []string `json:"segment_ids"`
	TemplateSource string   `json:"template_source,omitempty"`
	TemplateID     string   `json:"template_id,omitempty"`
	BatchSize      int      `json:"batch_size"`
	DelayMs        int64    `json:"delay_ms"`
	// Variants has one content, or several for an A/B test.
	Variants []CampaignContent `json:"variants"`
	AB       *ABTest           `json:"ab,omitempty"`
	// Everybody sends to all contacts when neither lists nor segments are named.
	Everybody bool `json:"everybody,omitempty"`
	// Devices leaves out people without a device; without lists and segments it sends to
	// all who have one.
	Devices bool `json:"devices,omitempty"`
	// ScheduledMs is the schedule that starts it, 0 where somebody does.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// CountsSent counts those who were sent the campaign before among the run's recipients,
	// as skipped. Starts of before apply version 10 left them out of both.
	CountsSent bool `json:"counts_sent,omitempty"`
	// By is who starts it, for the audit log; empty where its schedule does. It goes
	// into the record as that of every command, see Node.CommandBy of package node.
	By ChangedBy `json:"-"`
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

// CampaignRun is a campaign being sent, or the last time it was.
type CampaignRun struct {
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

	// Past are the runs before this one, the oldest first; see [Machine.keepRun].
	Past []PastRun `json:"past,omitempty"`

	// Links is how many links each variant has.
	Links []int `json:"links,omitempty"`
	// ContentBytes and LinkBytes are what is stored of the contents, see texts.go.
	ContentBytes int `json:"content_bytes,omitempty"`
	LinkBytes    int `json:"link_bytes,omitempty"`

	dirty bool
}

// VariantCounts are those of one variant of an A/B test. Recipients count once.
type VariantCounts struct {
	Sent    uint64 `json:"sent"`
	Opened  uint64 `json:"opened"`
	Clicked uint64 `json:"clicked"`
}

// Busy reports whether the run goes on.
func (r *CampaignRun) Busy() bool {
	return r != nil && (r.Status == RunSending || r.Status == RunTesting)
}

// CampaignBatch asks for the next recipients, and claims them.
type CampaignBatch struct {
	ID  string `json:"id"`
	Run int    `json:"run"`
	// Epoch is the one under which they are sent to, 0 when embedded.
	Epoch uint64 `json:"epoch,omitempty"`
}

// Recipient is one message to be sent.
type Recipient struct {
	Ordinal uint32 `json:"ordinal"`
	Variant int    `json:"variant"`
}

// CampaignBatchReply has the recipients of the next messages.
type CampaignBatchReply struct {
	Recipients []Recipient `json:"recipients"`
	// Left is how many have not been looked at.
	Left uint64 `json:"left"`
	// WaitMs is how long an A/B test still waits, when nobody else is left.
	WaitMs int64 `json:"wait_ms,omitempty"`
	// Stopped says why the run has ended before its end.
	Stopped string `json:"stopped,omitempty"`
}

// startCampaign fixes the recipients. Those who were sent the campaign before
// are left out.
func (m *Machine) startCampaign(cmd *command, c CampaignStart) *Refusal {
	a := cmd.account
	x := a.campaigns[c.ID]
	if x == nil {
		return noCampaign()
	}
	old := a.runs[c.ID]
	if old.Busy() {
		return &Refusal{Code: "conflict", Message: "the campaign is being sent; wait until that is done"}
	}
	switch {
	case c.ScheduledMs != 0 && (!x.Due || x.ScheduledMs != c.ScheduledMs):
		return notScheduled()
	case c.BatchSize < 1 || c.BatchSize > maxBatch:
		return invalid("batch_size", "batch_size Input should be from 1 to %d", maxBatch)
	case c.DelayMs < 0 || c.DelayMs > 60_000:
		return invalid("delay_between_batches", "delay_between_batches Input should be from 0.1 to 60")
	case len(c.Variants) < 1 || len(c.Variants) > maxVariants:
		return invalid("variants", "variants must have 2 to %d entries", maxVariants)
	}
	if r := a.checkAudience(c.ListIDs, c.SegmentIDs); r != nil {
		return r
	}
	if x.Medium() == "email" {
		for i := range c.Variants {
			if r := a.domains.MayBeSender(c.Variants[i].Sender); r != nil {
				return r
			}
		}
	}
	audience, refusal := a.audience(&c)
	if refusal != nil {
		return refusal
	}
	links, counts := linksOf(c.Variants)
	contentText, linkText := must.JSON(c.Variants), []byte(nil)
	if slices.ContainsFunc(counts, func(n int) bool { return n > 0 }) {
		linkText = must.JSON(links)
	}
	longer := len(contentText) + len(linkText)
	if old != nil {
		longer -= old.ContentBytes + old.LinkBytes
	}
	if r := a.sending.RoomForText("body", longer); r != nil {
		return r
	}
	members := audience.GetCardinality()
	if c.Devices {
		if len(c.ListIDs)+len(c.SegmentIDs) == 0 {
			audience = a.withDevices(nil)
			members = audience.GetCardinality()
		} else {
			audience = a.withDevices(audience)
		}
	}
	// A crash after the last run was stopped may have left some in flight.
	if old != nil {
		m.returnCredits(a, x, old)
	}
	audience.Or(a.members(campaignSet(x.Number, setPending)))
	a.set(campaignSet(x.Number, setPending)).Assign(roaring.New())
	total := audience.GetCardinality()
	audience.AndNot(a.members(campaignSet(x.Number, setSent)))
	left := audience.GetCardinality()
	r := &CampaignRun{
		ID: c.ID, Run: 1, Status: RunSending, ListIDs: c.ListIDs, SegmentIDs: c.SegmentIDs,
		TemplateSource: c.TemplateSource, TemplateID: c.TemplateID, BatchSize: c.BatchSize, DelayMs: c.DelayMs,
		StartedMs: m.logTime, Total: left, AB: c.AB, Variants: len(c.Variants), Links: counts,
	}
	if old != nil {
		r.Run, r.Opens, r.Clicks, r.ByLink, r.Accepted, r.Retired, r.Devices, r.VariantOf = old.Run+1, old.Opens, old.Clicks, old.ByLink, old.Accepted, old.Retired, old.Devices, old.VariantOf
	}
	switch {
	case old != nil && cmd.name != commandCampaignStart1:
		r.Past = m.keepRun(a, x, old)
	case old != nil:
		r.Past = old.Past
	}
	if c.CountsSent && left < total {
		r.Total, r.Skipped = total, map[string]int{AlreadySent: int(total - left)}
	}
	if c.Devices {
		r.Members = members
	}
	if r.AB != nil {
		r.AB.Winner, r.AB.EndsMs = -1, 0
		r.AB.Tested = max(min(uint64(len(c.Variants)), left), left*uint64(r.AB.Percent)/100)
	}
	a.set(campaignSet(x.Number, setAudience)).Assign(audience)
	m.keepContents(a, r, old, contentText, linkText)
	a.runs[c.ID] = r
	a.touchRun(r)
	m.setSchedule(a, x, CampaignSchedule{}) // whether it started this run or a person did, it must not start another
	m.started = true
	cmd.reply(r)
	return nil
}

// audience is the union of lists and segments, each profile once.
func (a *account) audience(c *CampaignStart) (*roaring.Bitmap, *Refusal) {
	out := roaring.New()
	for _, id := range c.ListIDs {
		out.Or(a.members(listSet(a.list(id).Number)))
	}
	for _, id := range c.SegmentIDs {
		if !a.engine.Live(id) {
			return nil, &Refusal{Code: "conflict", Field: "segment_ids",
				Message: "segment_ids: " + segmentName(a.segments[id]) + " is still being built; try again when it is live"}
		}
		out.Or(a.engine.Members(id, a.engine.NowMs()))
	}
	if c.Everybody {
		out.Or(a.members(setContacts))
	}
	return out, nil
}

// touchRun notes that a run has changed since the last checkpoint.
func (a *account) touchRun(r *CampaignRun) {
	if !r.dirty {
		r.dirty = true
		a.dirtyRuns = append(a.dirtyRuns, r)
	}
}

// storeRuns hands the changed runs to the store.
func (m *Machine) storeRuns(a *account) {
	for _, r := range a.dirtyRuns {
		if a.runs[r.ID] == r {
			m.store.PutEntity(state.EntityKey(a.number, state.EntityRun, r.ID), must.JSON(r))
		}
		r.dirty = false
	}
	a.dirtyRuns = a.dirtyRuns[:0]
}

// run finds the run a command speaks of, nil when that is over.
func (a *account) run(id string, number int) (*Campaign, *CampaignRun) {
	if r := a.runs[id]; r.Busy() && r.Run == number {
		return a.campaigns[id], r
	}
	return nil, nil
}

func runOver() *Refusal {
	return &Refusal{Code: "conflict", Message: "this run of the campaign is over"}
}

// batchCampaign takes the next recipients out of the audience: those who may be
// sent to become pending, the others are counted.
func (m *Machine) batchCampaign(cmd *command, c CampaignBatch) *Refusal {
	if r := m.checkEpoch(c.Epoch); r != nil {
		return r
	}
	a := cmd.account
	x, r := a.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	a.touchRun(r)
	audience, pending := a.set(campaignSet(x.Number, setAudience)), a.set(campaignSet(x.Number, setPending))
	var reply CampaignBatchReply
	budget, wait := m.testBudget(a, x, r)
	if wait > 0 {
		reply.WaitMs, reply.Left = wait, audience.Bits.GetCardinality()
		cmd.reply(reply)
		return nil
	}
	sent, medium := a.members(campaignSet(x.Number, setSent)), x.Medium()
	limit := min(uint64(r.BatchSize), budget)
	for _, o := range page(audience.Bits, 0, maxLooked) {
		if uint64(len(reply.Recipients)) >= limit {
			break
		}
		audience.Remove(o)
		o = a.root(o)
		if err := m.load(a, o, &m.doc); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		reason := a.whyUnreachable(&m.doc, medium)
		if reason == "" && (sent.Contains(o) || pending.Bits.Contains(o) || sentToPast(sent, &m.doc)) {
			reason = "already sent"
		}
		if reason == "" && medium == "email" && int64(len(reply.Recipients)) >= a.EmailCredits {
			audience.Add(o)
			m.stopRun(a, r, "the account is out of e-mail credits; top up and send again")
			reply.Stopped = r.Errors[len(r.Errors)-1]
			break
		}
		if reason != "" {
			if r.Skipped == nil {
				r.Skipped = map[string]int{}
			}
			r.Skipped[reason]++
			continue
		}
		pending.Add(o)
		reply.Recipients = append(reply.Recipients, Recipient{o, r.variant(o)})
	}
	if medium == "email" {
		m.spendCredits(a, int64(len(reply.Recipients))) // there are enough
	}
	reply.Left = audience.Bits.GetCardinality()
	cmd.reply(reply)
	return nil
}

// sentToPast reports whether a profile that was merged into this one was sent to.
func sentToPast(sent *roaring.Bitmap, d *profile.Document) bool {
	return slices.ContainsFunc(d.Merged, func(p profile.MergedProfile) bool { return sent.Contains(p.Ordinal) })
}

// testBudget is how many recipients may be taken now, and how long an A/B test
// waits before it goes on.
func (m *Machine) testBudget(a *account, x *Campaign, r *CampaignRun) (budget uint64, waitMs int64) {
	ab := r.AB
	if ab == nil || ab.Winner >= 0 {
		return maxBatch, 0
	}
	pending := a.members(campaignSet(x.Number, setPending)).GetCardinality()
	switch taken := r.Sent + r.Failed + pending; {
	case taken < ab.Tested && !a.members(campaignSet(x.Number, setAudience)).IsEmpty():
		return ab.Tested - taken, 0
	case pending > 0:
		return 0, testPollMs
	case ab.EndsMs == 0:
		ab.EndsMs, r.Status = m.logTime+ab.WaitMs, RunTesting
		return 0, max(ab.WaitMs, 1)
	case m.logTime < ab.EndsMs:
		return 0, ab.EndsMs - m.logTime
	}
	ab.Winner, r.Status = r.best(), RunSending
	return maxBatch, 0
}

// testPollMs is how often an A/B test looks whether its messages are out.
const testPollMs = 200

// best is the variant with the highest rate of the test's metric; of equal ones
// the first.
func (r *CampaignRun) best() int {
	best := 0
	count := func(i int) (hits, of uint64) {
		if i >= len(r.VariantOf) {
			return 0, 1
		}
		v := r.VariantOf[i]
		if r.AB.Metric == "clicks" {
			return v.Clicked, max(v.Sent, 1)
		}
		return v.Opened, max(v.Sent, 1)
	}
	for i := 1; i < r.Variants; i++ {
		h, n := count(i)
		if bh, bn := count(best); h*bn > bh*n {
			best = i
		}
	}
	return best
}

// variant is the one a recipient gets.
func (r *CampaignRun) variant(o uint32) int {
	switch {
	case r.AB == nil:
		return 0
	case r.AB.Winner >= 0:
		return r.AB.Winner
	}
	// Neighbours differ, and the order of the audience does not matter.
	return int((uint64(o)*0x9e3779b97f4a7c15 + uint64(r.Run)) >> 33 % uint64(r.Variants))
}

// stop ends a run before its end.
func (r *CampaignRun) stop(nowMs int64, reason string) {
	r.Status, r.FinishedMs = RunStopped, nowMs
	r.note(reason)
}

// note remembers an error, once.
func (r *CampaignRun) note(text string) {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	if len(r.Errors) < maxRunErrors && !slices.Contains(r.Errors, text) {
		r.Errors = append(r.Errors, text)
	}
}

// CampaignRun is the present or last run of a campaign.
func (v *View) CampaignRun(id string) (CampaignRun, bool) {
	r := v.a.runs[id]
	if r == nil {
		return CampaignRun{}, false
	}
	c := *r
	c.Links = slices.Clone(r.Links)
	c.Skipped, c.Errors, c.ByLink, c.VariantOf = maps.Clone(r.Skipped), slices.Clone(r.Errors), slices.Clone(r.ByLink), slices.Clone(r.VariantOf)
	if r.AB != nil {
		ab := *r.AB
		c.AB = &ab
	}
	return c, true
}
