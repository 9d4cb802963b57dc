package segments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/resolver"
)

// step measures one size of the account.
type step struct {
	*run
	number   int
	profiles int
	out      *Step
	live     []string // ids of the live definitions
	streams  uint64
}

// errTimeOut means that the budget ended within a step.
var errTimeOut = errors.New("the budget of time ended")

// maker is a new maker that repeats no other.
func (s *step) maker() *maker {
	s.streams++
	return newMaker(s.o.Seed, uint64(s.number)<<40|2<<32|s.streams)
}

// records makes records of present events of the usual types.
func (s *step) records(events int) [][]byte {
	m := s.maker()
	return m.records(events, func() int { return s.o.pick(m.rng, s.profiles) }, "")
}

// phase is a part of a step.
type phase struct {
	name         string
	proportional bool
	fn           func(context.Context) error
}

func (s *step) phases() []phase {
	return []phase{
		{"grow", true, s.grow},
		{"memory without segments", true, s.memoryWithout},
		{"backfill", true, s.backfills},
		{"ingest without segments", true, s.ingestWithout},
		{"make 20 segments live", true, s.goLive},
		{"restart with 20 segments", true, s.restartWith},
		{"ingest with 20 segments", true, s.ingestWith},
		{"verify", true, s.verify},
		{"checkpoint", true, s.measureCheckpoint},
		{"counts", false, s.counts},
		{"counts as SQL", true, s.sqlCounts},
		{"ingest after the segments are deleted", false, s.ingestAgain},
		{"cost by number of segments", false, s.cost},
		{"previews", true, s.previews},
	}
}

// measure runs all phases. When the budget ends in between, the step says what
// is missing and errTimeOut is returned.
func (s *step) measure(ctx context.Context) error {
	begun := time.Now()
	defer func() {
		s.out.Seconds = time.Since(begun).Seconds()
		used, _ := child.UsageOf(os.Getpid())
		s.out.PeakRSS = used.PeakRSSBytes
		s.out.DiskBytes, _ = dirBytes(s.a.dir)
		if s.a.node != nil {
			s.out.Events = int64(s.a.node.Stats()[0].Events) + s.earlier
		}
	}()
	bounded, cancel := context.WithDeadlineCause(ctx, s.deadline, errTimeOut)
	defer cancel()
	for _, p := range s.phases() {
		s.o.Logf("%d profiles: %s", s.profiles, p.name)
		at := time.Now()
		err := p.fn(bounded)
		s.out.Phases = append(s.out.Phases, PhaseTime{p.name, time.Since(at).Seconds(), p.proportional})
		if err == nil && bounded.Err() != nil {
			err = context.Cause(bounded)
		}
		switch {
		case err == nil:
		case ctx.Err() == nil && errors.Is(context.Cause(bounded), errTimeOut) && !errors.Is(err, ErrDiffers):
			s.out.Incomplete = fmt.Sprintf("the budget of %v ended in: %s", s.o.Budget, p.name)
			return errTimeOut
		default:
			return fmt.Errorf("%d profiles: %s: %w", s.profiles, p.name, err)
		}
	}
	return nil
}

func (s *step) grow(ctx context.Context) (err error) {
	s.out.Grow, err = s.a.grow(ctx, s.o, s.number, s.profiles)
	return err
}

// memoryWithout measures memory beside leaf state, as it is and after a restart.
func (s *step) memoryWithout(ctx context.Context) error {
	if err := s.a.node.Checkpoint(); err != nil {
		return err
	}
	m := &s.out.Memory
	m.Bare = s.bare0
	var err error
	if m.Served, err = memoryNow(); err != nil {
		return err
	}
	if s.out.RestartBare, err = s.reopen(); err != nil {
		return err
	}
	if m.Started, err = memoryNow(); err != nil {
		return err
	}
	n := float64(s.profiles)
	m.HeapPerProfile = float64(m.Started.HeapBytes-m.Bare.HeapBytes) / n
	m.RSSPerProfile = float64(m.Started.RSSBytes-m.Bare.RSSBytes) / n
	m.ServedHeapPerProfile = float64(m.Served.HeapBytes-m.Bare.HeapBytes) / n
	m.ServedRSSPerProfile = float64(m.Served.RSSBytes-m.Bare.RSSBytes) / n
	return ctx.Err()
}

// reopen restarts the node. It is not given the step's deadline: half a restart
// would leave nothing to continue with.
func (s *step) reopen() (*Restart, error) {
	s.earlier += int64(s.a.node.Stats()[0].Events)
	r, err := s.restart(s.base)
	if err != nil {
		return nil, err
	}
	return r, s.a.settle(s.base)
}

// warmEvents bounds the events that bring profiles into caches.
const warmEvents = 40_000_000

// warmUp sends an event of each profile that is active, in no order, and then as many events of
// any of them: behind a restart a profile's document is on the disk alone. A server restarts
// seldom, and its profiles are active all the time.
func (s *step) warmUp(ctx context.Context) error {
	active := min(s.o.active(s.profiles), warmEvents/2)
	m := s.maker()
	order := m.rng.Perm(s.o.active(s.profiles))[:active]
	each := func() int {
		profile := s.o.nth(order[0], s.profiles)
		order = order[1:]
		return profile
	}
	for _, pick := range []func() int{each, func() int { return s.o.pick(m.rng, s.profiles) }} {
		for left := active; left > 0; left -= s.o.Events {
			if _, err := s.a.ingest(ctx, s.o.Workers, m.records(min(left, s.o.Events), pick, "")); err != nil {
				return err
			}
		}
	}
	return nil
}

// ingestRounds measures ingest, after a part of it that is not measured.
func (s *step) ingestRounds(ctx context.Context) (Rate, error) {
	if _, err := s.a.ingest(ctx, s.o.Workers, s.records(s.o.Events/4)); err != nil {
		return Rate{}, err
	}
	var rounds []Rate
	for range s.o.Rounds {
		r, err := s.ingestOnce(ctx)
		if err != nil {
			return Rate{}, err
		}
		rounds = append(rounds, r)
	}
	return join(rounds), nil
}

func (s *step) ingestOnce(ctx context.Context) (Rate, error) {
	return s.a.ingest(ctx, s.o.Workers, s.records(s.o.Events))
}

func (s *step) ingestWithout(ctx context.Context) (err error) {
	if err = s.warmUp(ctx); err != nil {
		return err
	}
	s.out.Ingest.Without, err = s.ingestRounds(ctx)
	return err
}

// goLive saves the live definitions and waits for them.
func (s *step) goLive(ctx context.Context) error {
	begun := time.Now()
	for _, d := range liveDefinitions() {
		refs := make([]any, len(d.refs))
		for i, r := range d.refs {
			refs[i] = s.live[r]
		}
		text := d.text
		if len(refs) > 0 {
			text = fmt.Sprintf(text, refs...)
		}
		id, err := s.a.define(ctx, d.name, text)
		if err != nil {
			return err
		}
		s.live = append(s.live, id)
	}
	if err := s.a.waitLive(ctx, s.live...); err != nil {
		return err
	}
	s.out.LiveSeconds = time.Since(begun).Seconds()
	return s.a.node.Checkpoint()
}

func (s *step) ingestWith(ctx context.Context) (err error) {
	cold, err := s.ingestOnce(ctx)
	if err != nil {
		return err
	}
	s.out.Ingest.Cold = join([]Rate{cold})
	if err = s.warmUp(ctx); err != nil {
		return err
	}
	if s.out.Ingest.With, err = s.ingestRounds(ctx); err != nil {
		return err
	}
	s.out.Ingest.compare()
	return s.profileIngest(ctx)
}

// profileIngest writes a CPU profile of more of the same, if one is wanted.
func (s *step) profileIngest(ctx context.Context) (err error) {
	if s.o.ProfileDir == "" {
		return nil
	}
	records := s.records(4 * s.o.Events)
	f, err := os.Create(filepath.Join(s.o.ProfileDir, fmt.Sprintf("ingest-20-segments-%d.pprof", s.profiles)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	_, err = s.a.ingest(ctx, s.o.Workers, records)
	return err
}

// measureCheckpoint writes a checkpoint of a fixed number of events.
func (s *step) measureCheckpoint(ctx context.Context) (err error) {
	if err := s.a.node.Checkpoint(); err != nil {
		return err
	}
	r, err := s.ingestOnce(ctx)
	if err != nil {
		return err
	}
	if s.out.Checkpoint, err = s.checkpoint(); err == nil {
		s.out.Checkpoint.CPUMicros = report.Ratio(1e6*s.out.Checkpoint.CPUSeconds, float64(r.Events))
	}
	return err
}

// restartWith restarts with the live segments and measures what they take.
func (s *step) restartWith(ctx context.Context) (err error) {
	if s.out.Restart, err = s.reopen(); err != nil {
		return err
	}
	m := &s.out.Memory
	if m.WithSegments, err = memoryNow(); err != nil {
		return err
	}
	err = s.a.read(ctx, func(v *resolver.View) error {
		m.Segments = v.Segments().Stats()
		return nil
	})
	m.BytesPerValue = report.Ratio(float64(m.Segments.Bytes), float64(m.Segments.Values))
	m.SegmentBytesPerProfile = float64(m.Segments.Bytes) / float64(s.profiles)
	m.SegmentHeapPerProfile = float64(m.WithSegments.HeapBytes-m.Started.HeapBytes) / float64(s.profiles)
	return err
}

func (s *step) ingestAgain(ctx context.Context) (err error) {
	if err := s.a.undefineAll(ctx, s.live); err != nil {
		return err
	}
	if s.out.Ingest.WithoutAgain, err = s.ingestRounds(ctx); err == nil {
		s.out.Ingest.compare()
	}
	return err
}
