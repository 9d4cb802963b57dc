package resolver

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// claimWorld is a log that two nodes read and append to. Each carries out what
// its own replica says is due, in single steps, and can be frozen between any
// two of them while the other one takes over.
type claimWorld struct {
	t     *testing.T
	rng   *rand.Rand
	log   [][]byte
	seq   uint64
	nowMs int64
	nodes []*claimNode

	epoch uint64 // the newest in the log
	// Of each item: how often it came about, how often that may be once more
	// because its node was superseded while it was under way, and because an
	// answer was lost under the epoch that held.
	effects, hits, lost map[claimedItem]int
	refused             int // claims
}

type claimedItem struct {
	kind   string
	origin uint64
}

type claimNode struct {
	name    string
	m       *Machine
	epoch   uint64 // its own newest
	frozen  int    // steps for which it stands still
	workers []*claimWorker
	rows    query.Batch
}

// claimWorker carries out one item.
type claimWorker struct {
	work   view.OutboxWork
	epoch  uint64
	step   int
	record eventlog.RecordID // that it waits for
	result string
}

const (
	stepClaim = iota
	stepClaiming
	stepEffect
	stepReport
	stepReporting
	stepOver
)

const simWorkers = 3

func (w *claimWorld) append(kind eventlog.Kind, account uint64, name string, args any) eventlog.RecordID {
	w.seq++
	w.nowMs++
	env := eventlog.Envelope{Kind: kind, Account: account, StampMs: w.nowMs}
	binary.LittleEndian.PutUint64(env.ID[:], w.seq)
	rec := eventlog.AppendCommand(env.Append(nil), name, must.JSON(args))
	w.log = append(w.log, rec)
	if w.rng.IntN(20) == 0 { // the log could not say that it has it
		w.log = append(w.log, rec)
	}
	return env.ID
}

func (w *claimWorld) command(name string, args any) eventlog.RecordID {
	return w.append(eventlog.KindCommand, testAccount, name, args)
}

func (n *claimNode) behind(w *claimWorld) bool { return n.m.next < int64(len(w.log)) }

// apply applies one record and answers what waits for it.
func (w *claimWorld) apply(n *claimNode) {
	var out Outcome
	rec := w.log[n.m.next]
	recordLog(w.t, n.m, rec)
	if err := n.m.Apply(n.m.next, rec, &n.rows, &out); err != nil {
		w.t.Fatal(err)
	}
	n.rows.Reset()
	env, _, _ := eventlog.DecodeEnvelope(rec)
	for _, x := range n.workers {
		if x.record != env.ID || x.step != stepClaiming && x.step != stepReporting {
			continue
		}
		switch {
		case x.step == stepReporting:
			x.step = stepOver
		case out.Refusal != nil:
			w.refused++
			x.step = stepOver
		case len(answer[OutboxClaimReply](w.t, &out).Denied) > 0:
			x.step = stepOver
		default:
			x.step = stepEffect
		}
	}
	n.workers = slices.DeleteFunc(n.workers, func(x *claimWorker) bool { return x.step == stepOver })
}

func (n *claimNode) holdsLease() bool { return n.epoch != 0 && n.epoch == n.m.epoch.Number }

// begin takes an item that is due here and not under way here.
func (w *claimWorld) begin(n *claimNode) {
	v := n.m.View(nil, testAccount)
	list, err := v.OutboxDue(pick(w.rng, outbox.KindEmail, outbox.KindWebhook), 1<<60, 1+w.rng.IntN(5), func(seq uint64) bool {
		return slices.ContainsFunc(n.workers, func(x *claimWorker) bool { return x.work.Seq == seq })
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(list) > 0 {
		n.workers = append(n.workers, &claimWorker{work: pick(w.rng, list...), epoch: n.epoch})
	}
}

func (w *claimWorld) work(x *claimWorker) {
	id := claimedItem{x.work.Kind, x.work.Origin}
	switch x.step {
	case stepClaim:
		x.record = w.command(CommandOutboxClaim, OutboxClaim{x.epoch, []ClaimItem{{x.work.Seq, x.work.Attempt}}})
		x.step = stepClaiming
	case stepEffect:
		x.result = outbox.ResultSent
		switch w.rng.IntN(6) {
		case 0: // it did not come about
			x.result = outbox.ResultRetry
		case 1: // it did, and the answer is lost
			x.result = outbox.ResultRetry
			w.effects[id]++
			if x.epoch == w.epoch {
				w.lost[id]++
			}
		default:
			w.effects[id]++
		}
		x.step = stepReport
	case stepReport:
		x.record = w.command(messages.CommandOutboxDone, outbox.Done{Seq: x.work.Seq, Attempt: x.work.Attempt, Result: x.result, Reason: "why", Epoch: x.epoch})
		x.step = stepReporting
	}
}

// takeOver gives the lease to a node.
func (w *claimWorld) takeOver(n *claimNode) {
	for n.behind(w) {
		w.apply(n)
	}
	w.append(eventlog.KindCommand, 0, CommandPartitionEpoch, EpochBegin{Node: n.name, ApplyVersion: ApplyVersion})
	for n.behind(w) {
		w.apply(n)
	}
	n.epoch, w.epoch = n.m.epoch.Number, n.m.epoch.Number
	for _, other := range w.nodes {
		for _, x := range other.workers {
			if x.step != stepClaim {
				w.hits[claimedItem{x.work.Kind, x.work.Origin}]++
			}
		}
	}
}

// step lets one node do one thing.
func (w *claimWorld) step(n *claimNode) {
	switch {
	case n.frozen > 0:
		n.frozen--
	case n.behind(w) && w.rng.IntN(3) > 0:
		w.apply(n)
	case n.holdsLease() && len(n.workers) < simWorkers && w.rng.IntN(3) == 0:
		w.begin(n)
	case len(n.workers) > 0:
		w.work(pick(w.rng, n.workers...))
	}
}

// TestSimClaims: whenever a node is frozen and the other takes over, each effect
// comes about, at most once more for each time a node was superseded or lost an
// answer while it was under way, and both replicas are the same (R1).
func TestSimClaims(t *testing.T) {
	t.Parallel()
	refused, repeated, items := 0, 0, 0
	for seed := range testlevel.Count[uint64](20, 60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := &claimWorld{t: t, rng: rand.New(rand.NewPCG(seed, 25)), nowMs: 1_000_000_000_000, effects: map[claimedItem]int{}, hits: map[claimedItem]int{}, lost: map[claimedItem]int{}}
			for _, name := range []string{"one", "two"} {
				w.nodes = append(w.nodes, &claimNode{name: name, m: testMachine(t)})
			}
			w.command(CommandBootstrap, testBootstrap(DefaultSettings()))
			w.takeOver(w.nodes[0])
			for range 2 {
				url, events := "https://hooks.example.com/", []string{"contact.created"}
				w.command(outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &url, Events: &events, Secret: "whsec_1"})
			}
			w.command(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", HTML: "x"})
			w.takeOver(w.nodes[0])
			tpl := w.nodes[0].m.View(nil, testAccount).Campaigns().Templates()[0].ID
			for i := range 1500 {
				switch w.rng.IntN(30) {
				case 0:
					w.command(messages.CommandEmailSend, mailTo(fmt.Sprintf("u%d@x.io", i), tpl))
				case 1:
					w.command(contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("c%d@x.io", i)})
				case 2:
					if w.rng.IntN(3) == 0 {
						pick(w.rng, w.nodes...).frozen = w.rng.IntN(60)
					}
				case 3:
					// Mostly because the other stands still, at times for nothing.
					n := w.rng.IntN(2)
					if w.nodes[n].frozen == 0 && (w.nodes[1-n].frozen > 0 || w.rng.IntN(6) == 0) {
						w.takeOver(w.nodes[n])
					}
				default:
					w.step(pick(w.rng, w.nodes...))
				}
			}
			last := w.nodes[seed%2]
			for _, n := range w.nodes {
				n.frozen = 0
			}
			w.takeOver(last)
			for i := 0; last.m.accounts[testAccount].Outbox.Len()+len(w.nodes[0].workers)+len(w.nodes[1].workers) > 0 || w.nodes[0].behind(w) || w.nodes[1].behind(w); i++ {
				if i > 200_000 {
					t.Fatalf("%d items are left", last.m.accounts[testAccount].Outbox.Len())
				}
				w.step(pick(w.rng, w.nodes...))
			}
			for id, n := range w.effects {
				if most := 1 + w.hits[id] + w.lost[id]; n > most {
					t.Errorf("%s %d came about %d times, %d at most", id.kind, id.origin, n, most)
				}
				repeated += n - 1
			}
			if queued := lastItem(last.m); uint64(len(w.effects)) != queued {
				t.Errorf("%d of %d items came about", len(w.effects), queued)
			}
			one, err := w.nodes[0].m.Hash()
			if err != nil {
				t.Fatal(err)
			}
			if two, err := w.nodes[1].m.Hash(); err != nil || one != two {
				t.Errorf("the replicas are %s and %s, %v", one, two, err)
			}
			refused += w.refused
			items += len(w.effects)
		})
	}
	if refused < testlevel.Count(7, 20) || repeated < testlevel.Count(7, 20) {
		t.Errorf("%d claims refused, %d repeats: the simulation tries nothing", refused, repeated)
	}
	t.Logf("%d items, %d repeats, %d claims refused", items, repeated, refused)
}
