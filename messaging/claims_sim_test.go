package messaging_test

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/outbox"
)

// gate is where a process can be frozen: whatever it does passes here before and
// after, and waits while it is frozen.
type gate struct {
	mu     sync.Mutex
	left   int           // steps until it freezes by itself; 0 for never
	frozen chan struct{} // closed when it continues; nil while it runs
	hit    chan struct{} // has room for one: it has frozen
}

func (g *gate) step() {
	g.mu.Lock()
	if g.left > 0 {
		if g.left--; g.left == 0 && g.frozen == nil {
			g.frozen = make(chan struct{})
			g.hit <- struct{}{}
		}
	}
	frozen := g.frozen
	g.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// freeze waits for the n-th step from now and freezes there, or where the process
// is when it takes none.
func (g *gate) freeze(n int) {
	g.mu.Lock()
	g.left = n
	g.mu.Unlock()
	select {
	case <-g.hit:
		return
	case <-time.After(100 * time.Millisecond):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = 0
	if g.frozen == nil {
		g.frozen = make(chan struct{})
		return
	}
	<-g.hit
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = 0
	if g.frozen != nil {
		close(g.frozen)
		g.frozen = nil
	}
}

// gatedLog is the log as a process that may be frozen reaches it.
type gatedLog struct {
	eventlog.Log
	gate  *gate
	pause *atomic.Int64 // ns that an append takes longer
}

func (l gatedLog) Append(ctx context.Context, partition int, rec []byte) (int64, error) {
	l.gate.step()
	defer l.gate.step()
	time.Sleep(time.Duration(l.pause.Load())) // a slow log is what is tested
	return l.Log.Append(ctx, partition, rec)
}

func (l gatedLog) Read(partition int, from int64) (eventlog.Reader, error) {
	r, err := l.Log.Read(partition, from)
	return gatedReader{r, l.gate}, err
}

// Trim does nothing: each process has checkpoints of its own.
func (l gatedLog) Trim(int, int64) error { return nil }

type gatedReader struct {
	eventlog.Reader
	gate *gate
}

func (r gatedReader) Next(ctx context.Context) (eventlog.Entry, error) {
	e, err := r.Reader.Next(ctx)
	r.gate.step()
	return e, err
}

// process is a node with all that leaves it.
type process struct {
	name       string
	gate       *gate
	pause      atomic.Int64 // see gatedLog
	node       *node.Node
	dispatcher *messaging.Dispatcher
	outbox     *messaging.Outbox
	client     *webhook.Client
	set        *metrics.Set
}

// effect is something that left a process.
type effect struct {
	node   string // "" when that is not known
	end    int64  // of the log at that time
	failed bool   // for a while: it was not taken
}

// fleet is processes over one log.
type fleet struct {
	t        *testing.T
	log      *file.Log
	history  query.History
	account  uint64
	at       time.Time
	hooks    *target
	template campaigns.Template
	places   int               // of each kind of effects, and of each run
	faults   *rand.Rand        // of campaigns' messages; nil for none
	faulty   int               // one of so many attempts to send such a message fails
	answer   func(node string) // is how long the relay takes to answer a process; nil is no time

	mu        sync.Mutex
	processes []*process
	effects   map[string][]effect // by id
	ids       map[string]string   // by what a message is and whom it goes to
}

const (
	fleetRuns = 2  // campaigns sent at once
	hurry     = 20 // pauses of campaigns are shorter by
)

// newFleet has two processes; the first serves an account with credits.
func newFleet(t *testing.T, places int) *fleet {
	t.Helper()
	f := &fleet{t: t, places: places, history: &noHistory{}, at: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), effects: map[string][]effect{}, ids: map[string]string{}}
	f.hooks = newTarget(t, func(_ int, s seen, _ http.ResponseWriter) {
		f.record("", "webhook to "+s.body, s.header.Get("Webhook-Id"), false)
	})
	var err error
	f.log, err = file.Open("log", file.Options{FS: vfs.NewMem(), Partitions: 1})
	ok(t, err)
	for _, name := range []string{"one", "two"} {
		f.processes = append(f.processes, f.start(name))
	}
	t.Cleanup(f.close)
	p := f.processes[0]
	ok(t, p.node.Take(t.Context(), 0))
	creds, err := api.NewCredentials(cryptorand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, creds.Bootstrap(t.Context(), p.node, cryptorand.Reader))
	f.account, _ = api.ParseAPIKey(creds.APIKey)
	f.must(p, resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: 100_000}, nil)
	f.must(p, campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "single", HTML: "<p>x"}, &f.template)
	return f
}

// captureFunc is a capture of texts.
type captureFunc func(capture.Message)

func (fn captureFunc) Add(m capture.Message) (int, error) { fn(m); return 1, nil }

// start opens a process on the log that all share, behind a gate of its own: servertest.Node
// would open a log for each.
func (f *fleet) start(name string) *process {
	p := &process{name: name, gate: &gate{hit: make(chan struct{}, 1)}}
	now := func() time.Time { return f.at }
	var err error
	p.node, err = node.Open(context.Background(), node.Options{FS: vfs.NewMem(), Dir: "state", Log: gatedLog{f.log, p.gate, &p.pause}, History: f.history, Now: now,
		Rand: cryptorand.Reader, Feed: node.FeedOptions{Delay: time.Hour}, Cluster: node.Cluster{NodeID: name, Owned: []int{}, RemoteLog: true, Remote: remote{f}}})
	ok(f.t, err)
	p.set = metrics.NewSet()
	p.client, err = webhook.NewClient(webhook.Options{Now: now, Guard: webhook.Guard{AllowPrivate: true}})
	ok(f.t, err)
	mailer := messaging.MailerFunc(func(m *email.Message) outcome.Result {
		p.gate.step()
		defer p.gate.step()
		what := m.Subject + " to " + m.To.Addr
		failed := strings.HasPrefix(m.To.Addr, "c") && f.fails(m.ID)
		f.record(name, what, m.ID, failed)
		if f.answer != nil {
			f.answer(name)
		}
		if failed {
			return outcome.Failed(outcome.Temporary, "451", errors.New("try later"))
		}
		return outcome.New(outcome.Accepted, "250", "ok")
	})
	texts := captureFunc(func(m capture.Message) {
		p.gate.step()
		defer p.gate.step()
		f.record(name, m.Body+" to "+m.To, m.ID, false)
	})
	p.outbox, err = messaging.NewOutbox(messaging.OutboxOptions{Node: p.node, Mailer: mailer, Capture: texts, Webhooks: p.client, PublicURL: "http://127.0.0.1:8080", Now: now,
		Rand: rand.Uint64, Metrics: p.set, Poll: 2 * time.Millisecond, Places: messaging.Places{Mails: f.places, Texts: f.places, Hooks: f.places}})
	ok(f.t, err)
	p.dispatcher, err = messaging.New(context.Background(), messaging.Options{Node: p.node, Mailer: mailer, PublicURL: "http://127.0.0.1:8080", Now: now, Metrics: p.set, Workers: f.places, Runs: fleetRuns,
		CampaignRun: f.campaignRun, Sleep: func(ctx context.Context, d time.Duration) error { return pause.For(ctx, d/hurry) }})
	ok(f.t, err)
	return p
}

func (f *fleet) close() {
	for _, p := range f.processes {
		p.gate.thaw()
	}
	for _, p := range f.processes {
		p.dispatcher.Close()
		p.outbox.Close()
		p.client.Close()
		ok(f.t, p.node.Close(context.Background()))
	}
	ok(f.t, f.log.Close())
}

// fails reports whether a campaign's message is to fail for a while: a few do, twice at most.
func (f *fleet) fails(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults != nil && f.faults.IntN(f.faulty) == 0 && len(f.effects[id]) < 2
}

// sent reports whether a message was taken.
func (f *fleet) sent(what string) bool {
	return slices.ContainsFunc(f.effects[f.ids[what]], func(e effect) bool { return !e.failed })
}

func (f *fleet) record(node, what, id string, failed bool) {
	_, end, err := f.log.Bounds(context.Background(), 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := f.ids[what]; err != nil || known && before != id {
		f.t.Errorf("%s is %s, and was %s, %v", what, id, before, err)
	}
	f.ids[what] = id
	f.effects[id] = append(f.effects[id], effect{node, end, failed})
}

// remote hands commands to the node that serves the partition.
type remote struct{ f *fleet }

func (r remote) Command(ctx context.Context, partition int, rec []byte) ([]byte, error) {
	for _, p := range r.f.processes {
		if p.node.Owns(partition) {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // it may be frozen
			defer cancel()
			return p.node.SubmitCommand(ctx, partition, rec)
		}
	}
	return nil, fmt.Errorf("%w: no node serves the partition", resolver.ErrNotOwner)
}

// campaignRun reads a run at the node that serves the partition.
func (f *fleet) campaignRun(ctx context.Context, account uint64, campaign string) (r campaigns.Run, err error) {
	err = resolver.ErrNotOwner
	for _, p := range f.processes {
		if err != nil && p.node.Owns(0) {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // it may be frozen
			err = p.node.Read(ctx, account, func(v *resolver.View) error { r, _ = v.Campaigns().Run(campaign); return nil })
			cancel()
		}
	}
	return r, err
}

// must carries out a command of a client, through a process that works.
func (f *fleet) must(p *process, name string, args, reply any) {
	f.t.Helper()
	b, err := p.node.Command(context.Background(), f.account, name, args)
	ok(f.t, err)
	if reply != nil {
		ok(f.t, json.Unmarshal(b, reply))
	}
}

// testimony is the epochs and claims that the log has.
type testimony struct {
	epochs []resolver.Epoch
	claims map[string][]testified // by id of the message, or campaign
}

type testified struct {
	epoch  uint64
	offset int64
}

// testimony reads the log.
func (f *fleet) testimony(sent map[string]string) (w testimony) {
	f.t.Helper()
	w.claims = map[string][]testified{}
	_, end, err := f.log.Bounds(context.Background(), 0)
	ok(f.t, err)
	r, err := f.log.Read(0, 0)
	ok(f.t, err)
	defer r.Close()
	for offset := range end {
		e, err := r.Next(context.Background())
		ok(f.t, err)
		env, body, err := eventlog.DecodeEnvelope(e.Data)
		ok(f.t, err)
		if env.Kind != eventlog.KindCommand {
			continue
		}
		name, args, err := eventlog.DecodeCommand(body)
		ok(f.t, err)
		switch name {
		case resolver.CommandPartitionEpoch:
			var c resolver.EpochBegin
			ok(f.t, json.Unmarshal(args, &c))
			w.epochs = append(w.epochs, resolver.Epoch{Number: uint64(offset) + 1, Node: c.Node})
		case resolver.CommandOutboxClaim:
			var c resolver.OutboxClaim
			ok(f.t, json.Unmarshal(args, &c))
			for _, it := range c.Items {
				id := strconv.FormatUint(it.Seq, 10)
				w.claims[id] = append(w.claims[id], testified{c.Epoch, offset})
			}
		case campaigns.CommandBatch, campaigns.CommandResume:
			var c campaigns.Batch
			ok(f.t, json.Unmarshal(args, &c))
			id := sent[c.ID]
			w.claims[id] = append(w.claims[id], testified{c.Epoch, offset})
		}
	}
	return w
}

// claimed counts the epochs of a node under which something was claimed before
// the log had its end at the time, and while the epoch was the newest.
func (w *testimony) claimed(id, node string, end int64) (n int) {
	for i, e := range w.epochs {
		if node != "" && e.Node != node {
			continue
		}
		for _, c := range w.claims[id] {
			if c.epoch == e.Number && c.offset < end && (i+1 == len(w.epochs) || uint64(c.offset) < w.epochs[i+1].Number) {
				n++
				break
			}
		}
	}
	return n
}

// late finds the epoch of a node's that was the newest of its own when the log had
// its end, if another one was newer.
func (w *testimony) late(node string, end int64) (epoch uint64, is bool) {
	for _, e := range w.epochs {
		switch {
		case int64(e.Number) > end:
			return epoch, is
		case e.Node == node:
			epoch, is = e.Number, false
		default:
			is = epoch != 0
		}
	}
	return epoch, is
}

// lateKind is effects that came about when their epoch was over.
type lateKind struct {
	epoch    uint64
	campaign string // "" for those of the outbox
	text     bool   // of the outbox, and no mail
}

// claimOf is by which id the claim of a message is found.
func (f *fleet) claimOf(id string) string {
	f.t.Helper()
	if rest, is := strings.CutPrefix(id, "msg_"); is {
		_, seq, _ := strings.Cut(rest, "_")
		return seq
	}
	_, send, is := compose.ParseMessageID(strings.Trim(id, "<>"))
	if !is {
		_, send, is = compose.ParseSend(id) // of a text
	}
	if origin, _, of := send.Outbox(); is && of {
		return strconv.FormatUint(origin, 10)
	}
	number, _, _, of := send.Campaign()
	if !is || !of {
		f.t.Fatalf("%q is no message", id)
	}
	return fmt.Sprintf("campaign %d", number)
}

// TestSimFrozenNodes: of two nodes over one log one after the other is frozen at
// some step, between claim, effect and outcome, or while messages wait for their next attempt,
// and the other takes over; then it continues where it was. Each effect is carried out, under a claim that was
// applied while its node's epoch was the newest, once for each such claim at most
// and always under the same id; no more are repeated than were under way. A request
// that waits for the end of a campaign is answered, on whichever node the campaign
// ended.
func TestSimFrozenNodes(t *testing.T) {
	t.Parallel()
	seeds, rounds := uint64(3), 8
	if testlevel.Long() {
		seeds, rounds = 40, 20
	}
	first := uint64(0)
	if s := os.Getenv("MUSTER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		ok(t, err)
		first, seeds = n, n+1
	}
	for seed := first; seed < seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { simFrozenNodes(t, rand.New(rand.NewPCG(seed, 6)), rounds) })
	}
}

func simFrozenNodes(t *testing.T, rng *rand.Rand, rounds int) {
	f := newFleet(t, 4)
	f.faults, f.faulty = rand.New(rand.NewPCG(rng.Uint64(), 7)), 2+rng.IntN(8)
	ctx := context.Background()
	owner := f.processes[0]
	const people = 60
	for i := range people {
		f.must(owner, contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("c%d@x.io", i)}, nil)
	}
	events := []string{"contact.created"}
	f.must(owner, outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &f.hooks.URL, Events: &events, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, nil)

	sent := map[string]string{}
	mails, hooks := 0, 0
	var waiting sync.WaitGroup
	for range rounds {
		var c campaigns.Campaign
		f.must(owner, campaigns.CommandSave, campaigns.Campaign{Name: "news", Channel: 2, Type: 1, Date: "2026-01-01"}, &c)
		sent[c.ID] = fmt.Sprintf("campaign %d", c.Number)
		content, err := compose.PrepareEmail(campaigns.Content{Subject: c.ID, Sender: "news@" + domains.Development, HTML: `<p>Hi <a href="{{unsubscribe_url}}">no</a>`})
		ok(t, err)
		start := campaigns.Start{ID: c.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 20}, Variants: []campaigns.Content{content}}
		switch rng.IntN(4) {
		case 0: // the node that began it is killed before it sends
			f.must(owner, campaigns.CommandStart, start, nil)
		case 1: // a request waits for the end
			dispatcher := owner.dispatcher
			waiting.Go(func() {
				r, err := dispatcher.Send(ctx, f.account, start, audit.Author{})
				done := r.Sent + r.Failed
				for _, n := range r.Skipped {
					done += uint64(n)
				}
				if err != nil || r.ID != c.ID || r.Status != campaigns.RunDone || r.Total < people || done != r.Total {
					t.Errorf("campaign %s: %+v %v", c.ID, r, err)
				}
			})
			f.until("a campaign was begun", owner, func(v *resolver.View) bool { r, _ := v.Campaigns().Run(c.ID); return r.Run == 1 })
		default:
			ok(t, owner.dispatcher.Start(ctx, f.account, start, audit.Author{}))
		}
		for range 15 {
			f.must(owner, messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: fmt.Sprintf("m%d@x.io", mails), TemplateID: f.template.ID}}, nil)
			mails++
		}
		for range 5 {
			var heard contacts.Reply
			f.must(owner, contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("h%d@x.io", hooks), Phone: fmt.Sprintf("+49301%d", hooks)}, &heard)
			f.must(owner, messages.CommandTextAnswer, messages.TextAnswer{Profile: heard.ID, Channel: outbox.KindSMS, Text: "answer", Key: heard.ID}, nil)
			hooks++
		}

		zombie, next := owner, f.processes[0]
		if next == owner {
			next = f.processes[1]
		}
		owner.gate.freeze(1 + rng.IntN(120))
		bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
		ok(t, next.node.Take(bounded, 0))
		cancel()
		owner = next
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // the moment at which it wakes is random
		zombie.gate.thaw()
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // and so is the one at which it is released
		// It learns of it by the log, before anybody tells it.
		eventually.Holds(t, "the frozen node no longer holds the lease", func() bool { return !zombie.node.HoldsLease(0) })
		ok(t, zombie.node.Release(ctx, 0))
	}
	f.until("all is sent", owner, func(v *resolver.View) bool {
		for id := range sent {
			switch r, _ := v.Campaigns().Run(id); r.Status {
			case campaigns.RunDone:
			case campaigns.RunStopped:
				t.Fatalf("campaign %s was stopped: %v", id, r.Errors)
			default:
				return false
			}
		}
		return v.Outbox().Len() == 0
	})
	waiting.Wait()

	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.testimony(sent)
	repeated := 0
	late := map[lateKind]int{}
	for id, list := range f.effects {
		of, taken := map[string]int{}, 0
		for _, e := range list {
			if epoch, is := w.late(e.node, e.end); is {
				kind := lateKind{epoch: epoch, text: !strings.Contains(id, "@")}
				if of := f.claimOf(id); strings.HasPrefix(of, "campaign") {
					kind.campaign = of
				}
				late[kind]++
			}
			if e.failed {
				continue
			}
			taken++
			of[e.node]++
			if n := w.claimed(f.claimOf(id), e.node, e.end); of[e.node] > n {
				t.Errorf("%s was carried out %d times by %q, which had claimed it %d times", id, of[e.node], e.node, n)
			}
		}
		repeated += max(0, taken-1)
	}
	// The contacts of the hooks are contacts: the later campaigns go to them, too.
	for id := range sent {
		for i := range people {
			if what := fmt.Sprintf("%s to c%d@x.io", id, i); !f.sent(what) {
				t.Errorf("%s was never sent", what)
			}
		}
	}
	for i := range mails {
		if what := fmt.Sprintf("single to m%d@x.io", i); !f.sent(what) {
			t.Errorf("%s was never sent", what)
		}
	}
	for i := range hooks {
		if what := fmt.Sprintf("answer to +49301%d", i); !f.sent(what) {
			t.Errorf("%s was never sent", what)
		}
	}
	heard := 0
	for what := range f.ids {
		if strings.HasPrefix(what, "webhook to ") {
			heard++
		}
	}
	if heard != hooks {
		t.Errorf("%d of %d webhooks were heard", heard, hooks)
	}
	lateAll := 0
	for what, n := range late {
		if lateAll += n; n > f.places {
			t.Errorf("%+v: %d effects came about when it was over, %d at most were under way", what, n, f.places)
		}
	}
	t.Logf("%d effects, %d repeats, %d late, %d epochs", len(f.effects), repeated, lateAll, len(w.epochs))
}

func (f *fleet) until(what string, p *process, is func(*resolver.View) bool) {
	f.t.Helper()
	eventually.Succeeds(f.t, func() error {
		done := false
		var state bytes.Buffer
		err := p.node.Look(f.account, func(v *resolver.View) error {
			if done = is(v); done {
				return nil
			}
			for _, r := range v.Campaigns().Busy() {
				fmt.Fprintf(&state, "campaign %s: %s, %d of %d; ", r.ID, r.Status, r.Sent, r.Total)
			}
			fmt.Fprintf(&state, "%d items", v.Outbox().Len())
			return nil
		})
		if err != nil && !errors.Is(err, resolver.ErrUnavailable) {
			f.t.Fatal(err)
		}
		if !done {
			return fmt.Errorf("%s: %s", what, state.String())
		}
		return nil
	})
}
