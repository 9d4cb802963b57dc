package resolver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/pacing"
)

// flowSim is one run of the simulation of flows: a machine, an oracle, and a
// source of what happens to both.
type flowSim struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	n     *flowNode
	o     *flowOracle
	w     *flowWords
	world int
	exact bool // no record was at its budget so far
	tight bool // records may carry out few steps
	step  string
	// last and queued are how many items were in the outbox ever, and how many
	// steps of each flow queued a message, when that was last looked at.
	last    uint64
	queued  map[uint32]uint64
	deleted map[uint32]bool // flows that were deleted by then
	// still is what is known of flows that were paused then.
	still map[uint32]stillFlow
	// rows and moves are how many events and transitions were compared.
	rows, moves int
	// file is the import, next its next row.
	file uint64
}

// simulatedFlows counts what happened in all runs, so that a simulation in which
// nothing does is not taken for a good one.
var simulatedFlows struct {
	exact, tight, enrolled, merged, calls, noted, cut, caused, credits, crashes, over, waited, next, again, lost, held atomic.Int64
}

// TestSimulationF1R1 lets random things happen to random flows, with crashes at
// any moment, and compares with an oracle that interprets the rules (F1): the
// enrolments of everybody in every flow, each effect once, events and counts; the
// state after a crash equals that before (R1).
//
// Every eighth seed has records that may carry out very few steps, so that much
// is left to further ones. How it is divided among them is not the oracle's
// affair: from then on it is checked that each step queues one effect, that no
// step is passed twice, that counts and timers fit what is stored, and that the
// work ends.
//
// Another eighth has flows that mostly begin by what flows do, for loops. One more has flows
// whose conditions lead to messages, and quiet hours that hold these up.
//
// MUSTER_FLOW_SEED repeats one seed and tells what happens in it,
// MUSTER_FLOW_SEEDS sets how many are run, from MUSTER_FLOW_FIRST; with
// MUSTER_LONG they are 10,000.
func TestSimulationF1R1(t *testing.T) {
	t.Parallel()
	seeds, first := 300, 0
	switch {
	case testlevel.Long():
		seeds = 10_000
	case testlevel.Quick():
		seeds = 50
	}
	if n, err := strconv.Atoi(os.Getenv("MUSTER_FLOW_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.Atoi(os.Getenv("MUSTER_FLOW_FIRST")); err == nil {
		first = n
	}
	if seed, err := strconv.ParseUint(os.Getenv("MUSTER_FLOW_SEED"), 10, 64); err == nil {
		simulateFlows(t, seed)
		return
	}
	x := &simulatedFlows
	t.Cleanup(func() {
		t.Logf("%d seeds, %d of them with few steps to a record, %d of the others compared to the end; %d enrolments, %d of them ended by merges, %d calls answered, %d of them noted in paused flows, %d loops cut, %d times a person in as many enrolments as the service may cause, %d pauses for credits, %d crashes, %d records over budget, %d with enrolments that wait, %d messages on a next channel, %d failed that may have gone out, %d messages held up, %d conditions with another outcome after that",
			seeds, x.tight.Load(), x.exact.Load(), x.enrolled.Load(), x.merged.Load(), x.calls.Load(), x.noted.Load(), x.cut.Load(), x.caused.Load(), x.credits.Load(), x.crashes.Load(), x.over.Load(), x.waited.Load(), x.next.Load(), x.lost.Load(), x.held.Load(), x.again.Load())
		for name, n := range map[string]int64{"enrolments": x.enrolled.Load() / 5, "merges": x.merged.Load() * 40, "calls": x.calls.Load() * 3, "noted answers": x.noted.Load() * 20,
			"people with as many enrolments as the service may cause": x.caused.Load() * 100,
			"records with enrolments that wait":                       x.waited.Load() * 20,
			"conditions with another outcome":                         x.again.Load() * 200,
			"failed messages that may have gone out":                  x.lost.Load() * 50,
			"pauses for credits":                                      x.credits.Load() * 4, "crashes": x.crashes.Load()} {
			if n < int64(seeds) && !t.Failed() && seeds >= 50 {
				t.Errorf("too few %s", name)
			}
		}
		// What a record leaves to the next is the machine's affair, so a run ends to be
		// compared at the first that does. Where records may do much, few do: 5 % and
		// one.
		if left := int64(seeds) - x.tight.Load() - x.exact.Load(); left > int64(seeds)/20+1 && !t.Failed() {
			t.Errorf("%d of %d seeds were not compared to the end", left, seeds)
		}
	})
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			simulateFlows(t, uint64(seed))
		})
	}
}

func (s *flowSim) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d, record %d, after %s: %s\nrepeat it with MUSTER_FLOW_SEED=%d go test ./resolver -run TestSimulationF1R1 -v", s.seed, len(s.n.log)-1, s.step, fmt.Sprintf(format, args...), s.seed)
}

// newFlowSim begins a run: everything in it follows from the seed.
func newFlowSim(t *testing.T, seed uint64) *flowSim {
	rng := rand.New(rand.NewPCG(seed, 6))
	credits := pick(rng, int64(0), 1, 1, 2, 2, 3, 1, 1000)
	loops := seed%8 == 3
	if loops {
		credits = 1000
	}
	steps, scan, tight := bounds.Steps, pick(rng, bounds.Scan, 1, 3), seed%8 == 7
	if tight {
		steps = pick(rng, 1, 2, 5, 20)
	}
	held := seed%8 == 5
	if held {
		credits = pick(rng, credits, 1000, 1000)
	}
	settings := DefaultSettings()
	if seed%4 != 0 {
		settings = withoutOptIn()
	}
	if held {
		// The run begins seconds before.
		settings.SendingLimits = &pacing.Limits{QuietHours: &pacing.QuietHours{From: "01:47", To: pick(rng, "01:48", "01:50", "02:30")}}
	}
	world := pick(rng, 5, 9, 15, 25)
	if held {
		world = 4
	}
	s := &flowSim{t: t, seed: seed, rng: rng, n: newFlowNode(t, settings, credits, steps, scan), o: newFlowOracle(t, settings, credits, scan), world: world, exact: true, tight: tight, queued: map[uint32]uint64{}, deleted: map[uint32]bool{}, still: map[uint32]stillFlow{}}
	s.o.now = s.n.now
	s.o.at = s.n.now
	s.w = &flowWords{rng: rng, now: s.n.now, loops: loops, held: held}
	s.o.bits = func(f *oracleFlow, p, step int, way uint32) uint64 {
		a := s.n.account()
		id := a.Profiles.Headers.Get(uint32(p)).ID
		b := append([]byte("split\x00"), id[:]...)
		for _, n := range [...]uint32{f.number, uint32(step), way} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		sum := a.Profiles.Hasher.Sum(b)
		return binary.LittleEndian.Uint64(sum[:])
	}
	s.prepare()
	return s
}

func simulateFlows(t *testing.T, seed uint64) {
	s := newFlowSim(t, seed)
	s.live(30 + s.rng.IntN(50))
	s.finish()
}

// live lets so many things happen.
func (s *flowSim) live(acts int) {
	for range acts {
		s.act()
		s.rest(s.rng.IntN(100) < 70)
		if s.rng.IntN(8) == 0 {
			s.consistent()
		}
	}
}

// prepare makes what flows refer to.
func (s *flowSim) prepare() {
	for range 2 {
		var l contacts.List
		s.command(contacts.CommandListCreate, contacts.ListSave{Name: "l"}, func(out *Outcome) { s.n.must(json.Unmarshal(out.Reply, &l)) })
		s.w.lists = append(s.w.lists, l.ID)
	}
	var x campaigns.Template
	s.command(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", Text: "x"}, func(out *Outcome) { s.n.must(json.Unmarshal(out.Reply, &x)) })
	s.w.template = x.ID
	if s.rng.IntN(2) == 0 {
		s.events()
	}
	for range 2 + s.rng.IntN(3) {
		s.createSegment()
	}
	for range 3 + s.rng.IntN(3) {
		s.createFlow()
		if s.rng.IntN(6) > 0 {
			s.publish(s.o.flows[len(s.o.flows)-1])
		}
	}
}

// finish works off what is left and compares a last time.
func (s *flowSim) finish() {
	s.step = "the end"
	s.n.now += s.rng.Int64N(100_000)
	for n := 0; s.n.m.Pending() > 0 || n == 0; n++ {
		if n > 20_000 {
			s.fatalf("work without an end")
		}
		s.continueRecord()
	}
	s.consistent()
	sum, err := s.n.m.Hash()
	s.n.must(err)
	if s.n.replayed() != sum {
		s.fatalf("R1: the state differs from that of a machine that never crashed")
	}
	x := &simulatedFlows
	if s.tight {
		x.tight.Add(1)
	}
	if s.exact {
		if !s.tight {
			x.exact.Add(1)
		}
		for _, f := range s.o.flows {
			x.enrolled.Add(int64(f.counts.Entered))
			x.cut.Add(int64(f.counts.LoopsCut))
			for _, enrolments := range f.enrolments {
				for _, w := range enrolments {
					if w.Reason == flows.ByMerge {
						x.merged.Add(1)
					}
				}
			}
		}
	}
	s.n.close()
}

// do appends a record and lets the oracle do the same.
func (s *flowSim) do(kind eventlog.Kind, body []byte, main func(out *Outcome)) {
	s.t.Helper()
	paused, begun := s.credited(), s.n.m.flows.Enrolments
	out := s.n.record(kind, body)
	simulatedFlows.credits.Add(max(0, s.credited()-paused))
	if s.n.account().Flows.Deferred() > 0 {
		simulatedFlows.waited.Add(1)
	}
	s.compareLedger()
	s.pausedMoveNobody()
	// So many enrolments are one after the other, as in a loop that takes its time:
	// they may be at the bound of what falls due in one record, too.
	many := s.n.m.flows.Enrolments-begun >= 300
	if s.n.account().Flows.Deferred() > 0 || peek.StepsLeft(s.n.m.flows) <= 0 || s.n.account().Engine.Lagging() || many {
		simulatedFlows.over.Add(1)
		s.exact = false
	}
	if !s.exact {
		return
	}
	o := s.o
	o.begin(s.n.now)
	o.advance()
	if kind != eventlog.KindContinue && kind != eventlog.KindTick {
		main(out)
	}
	if kind != eventlog.KindTick {
		s.promote()
	}
	if kind == eventlog.KindContinue {
		o.announceAll()
	}
	o.react()
	if kind == eventlog.KindContinue {
		o.catchUp()
	}
	have := inspect(s.n.account())
	for _, f := range o.flows {
		if x := &have[f.number]; f.publishing && !x.Publishing {
			o.goLive(f)
		}
	}
	if o.begun > 3000 {
		s.fatalf("the oracle enrols %d at once", o.begun)
	}
	s.compare()
}

// promote tells the oracle of definitions that are built: how they are is not
// its affair.
func (s *flowSim) promote() {
	for id, x := range s.o.segs {
		if x.next != nil && s.n.account().Engine.Live(id) {
			s.o.promote(id)
		}
	}
}

func (s *flowSim) command(name string, args any, main func(out *Outcome)) {
	s.t.Helper()
	s.step = fmt.Sprintf("%s %s", name, must.JSON(args))
	s.log()
	s.do(eventlog.KindCommand, eventlog.AppendCommand(nil, name, must.JSON(args)), main)
}

// log tells what happens, when one seed is repeated.
func (s *flowSim) log() {
	if os.Getenv("MUSTER_FLOW_SEED") != "" {
		s.t.Logf("record %d at %d: %s", len(s.n.log), s.n.now, s.step)
	}
}

func (s *flowSim) continueRecord() {
	s.step = "a continue record"
	s.log()
	s.do(eventlog.KindContinue, nil, nil)
}

func (s *flowSim) tick() {
	s.step = "a tick"
	s.log()
	s.do(eventlog.KindTick, nil, nil)
}

// rest appends continue records as a node does, all that are wanted or some.
func (s *flowSim) rest(all bool) {
	for n := 0; s.n.m.Pending() > 0 && (all || s.rng.IntN(2) == 0) && n < 50; n++ {
		s.continueRecord()
		s.sometimesCrash(40)
	}
}

// build gets segments and conditions live. Nothing else happens meanwhile: how
// they are built is tested elsewhere. Whom a new definition lets in may still be
// told when other things have happened, unless all is to be done.
func (s *flowSim) build(all bool) {
	for {
		chunk := s.n.work()
		if chunk == nil {
			break
		}
		s.step = "a chunk"
		s.log()
		s.do(eventlog.KindChunk, chunk, func(*Outcome) {})
		s.sometimesCrash(60)
	}
	for n := 0; s.n.account().Engine.Working() && n < 100 && (all || s.rng.IntN(2) == 0); n++ {
		s.continueRecord()
		s.sometimesCrash(60)
	}
}

func (s *flowSim) sometimesCrash(oneIn int) {
	switch {
	case s.rng.IntN(oneIn) == 0:
		s.n.crash()
		simulatedFlows.crashes.Add(1)
		s.consistent()
	case s.rng.IntN(oneIn) == 0:
		s.n.checkpoint()
	}
}
