package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/pause"
)

const (
	// scrubRate is how many bytes a second are read of the log, to compare checksums:
	// little beside what a disk gives, and a TB in three days.
	scrubRate = 4 << 20
	// scrubEvery is the time from one reading of all to the next, scrubFirst that from the
	// start to the first one.
	scrubEvery = 24 * time.Hour
	scrubFirst = 10 * time.Minute
	// scrubLook is the pause between two looks whether all files are there.
	scrubLook = time.Minute
)

// scrubbed is a log whose files are looked at while it is in use.
type scrubbed interface {
	Scrub(ctx context.Context, throttle func(ctx context.Context, bytes int) error, found func(error)) error
	Missing() ([]error, error)
	// Noticed is the damage that readers of the log have met.
	Noticed() []*eventlog.CorruptError
}

// scrubber looks for damage in the files of the log while the service runs, so that it
// is known while there still is a backup from before, and not at the next start.
type scrubber struct {
	of  scrubbed
	log *slog.Logger
	now func() time.Time
	// wait waits for a time, or until ctx ends, which is an error.
	wait func(ctx context.Context, d time.Duration) error
	// throttle bounds the reading, and counts it.
	throttle func(ctx context.Context, bytes int) error

	bytes, passes atomic.Int64
	// stop ends it; nil before run.
	stop func()

	mu struct {
		sync.Mutex
		// damaged and missing are what was found last: the file, by text.
		damaged, missing map[string]string
	}
}

func newScrubber(of scrubbed, log *slog.Logger) *scrubber {
	s := &scrubber{of: of, log: log, now: time.Now, wait: pause.For}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.throttle = Throttle(scrubRate, time.Now, func(n int) { s.bytes.Add(int64(n)) })
	return s
}

// Scrub begins to look at the files of the log, until [Engine.Close]. A log in Kafka is
// Kafka's to look after.
func (e *Engine) Scrub(log *slog.Logger) {
	if e.file == nil || e.scrub != nil {
		return
	}
	e.scrub = newScrubber(e.file, log)
	e.scrub.start()
}

func (s *scrubber) start() {
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.looks(ctx) })
	running.Go(func() { s.reads(ctx) })
	s.stop = func() { end(); running.Wait() }
}

// looks looks up all files again and again.
func (s *scrubber) looks(ctx context.Context) {
	for s.wait(ctx, scrubLook) == nil {
		found, err := s.of.Missing()
		if err != nil {
			s.log.Warn("the files of the log could not be looked up", "error", err)
			continue
		}
		now := map[string]string{}
		for _, err := range found {
			now[err.Error()] = fileOf(err)
		}
		s.mu.Lock()
		before := s.mu.missing
		s.mu.missing = now
		s.mu.Unlock()
		for text := range now {
			if _, known := before[text]; !known {
				s.log.Error("a file of the log is missing; put it back before the service is stopped, since a start is refused without it", "error", text)
			}
		}
	}
}

// reads reads all that is closed again and again.
func (s *scrubber) reads(ctx context.Context) {
	for wait := scrubFirst; s.wait(ctx, wait) == nil; {
		begun := s.now()
		now := map[string]string{}
		err := s.of.Scrub(ctx, s.throttle, func(err error) {
			text := err.Error()
			now[text] = fileOf(err)
			s.mu.Lock()
			_, known := s.mu.damaged[text]
			if s.mu.damaged == nil {
				s.mu.damaged = map[string]string{}
			}
			s.mu.damaged[text] = fileOf(err)
			s.mu.Unlock()
			if !known {
				s.log.Error("the log is damaged; the service continues, but a start may be refused, and a replay ends there", "error", text)
			}
		})
		wait = max(scrubLook, scrubEvery-s.now().Sub(begun))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("the log could not be read whole", "error", err)
			continue
		}
		s.mu.Lock()
		s.mu.damaged = now // what was put back is no damage any more
		s.mu.Unlock()
		s.passes.Add(1)
	}
}

// fileOf is the file that damage was found in.
func fileOf(err error) string {
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		return damaged.File
	}
	return err.Error()
}

func (s *scrubber) write(w io.Writer) {
	files := map[string]bool{}
	for _, e := range s.of.Noticed() {
		files[e.File] = true
	}
	s.mu.Lock()
	for _, file := range s.mu.damaged {
		files[file] = true
	}
	for _, file := range s.mu.missing {
		files[file] = true
	}
	s.mu.Unlock()
	metrics.WriteGaugeFloat64(w, "muster_log_damaged_files", float64(len(files)))
	metrics.WriteCounterUint64(w, "muster_log_scrubbed_bytes_total", uint64(s.bytes.Load()))
	metrics.WriteCounterUint64(w, "muster_log_scrubs_total", uint64(s.passes.Load()))
}
