package stalls

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/exp/trace"
)

// Work that takes processors, by a function that its stacks have. The first that fits counts.
var works = []struct{ function, name string }{
	{"resolver/node.(*partition).checkpointLoop", "checkpoint"},
	{"resolver/node.(*partition).apply", applyWork},
	{"resolver/internal/feed.", "history"},
	{"eventlog/file.(*partition).run", logWork},
	{"pebble/v2.(*DB).runCompaction", "compaction"},
	{"pebble/v2.(*DB).compact", "compaction"},
	{"pebble/v2.(*DB).flush", "compaction"},
	{"pebble/v2/sstable.", "compaction"},
	{"fasthttp.(*Server).serveConn", "requests"},
	{"fasthttp.(*workerPool)", "requests"},
	{"runtime.gcBgMarkWorker", "garbage collection"},
	{"runtime.bgsweep", "garbage collection"},
}

const (
	applyWork = "apply"
	logWork   = "log"
	otherWork = "anything else"
)

// workOf is the work that a stack belongs to, "" if it has none of the functions.
func workOf(s trace.Stack) string {
	best := len(works)
	for f := range s.Frames() {
		for i := range best {
			if strings.Contains(f.Func, works[i].function) {
				best = i
				break
			}
		}
	}
	if best == len(works) {
		return ""
	}
	return works[best].name
}

// callOf is the innermost function of a stack that is not the runtime's, without its package's path.
func callOf(s trace.Stack) string {
	for f := range s.Frames() {
		if strings.HasPrefix(f.Func, "runtime.") || strings.HasPrefix(f.Func, "internal/") || strings.HasPrefix(f.Func, "syscall.") {
			continue
		}
		return f.Func[strings.LastIndexByte(f.Func, '/')+1:]
	}
	return ""
}

// interval is a time in which a goroutine was in a state.
type interval struct {
	from, to time.Time
	work     string
	state    trace.GoState
	// what it waited for or called, as the stack at the end of the interval says.
	call   string
	locked bool // it waited for a mutex
}

// read reads a trace: the states of all goroutines, in the order in which they ended.
func read(r io.Reader, take func(interval)) error {
	in, err := trace.NewReader(r)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	var clock *trace.ClockSnapshot
	type goroutine struct {
		work, call string
		state      trace.GoState
		since      trace.Time
		known      bool
		locked     bool
	}
	goroutines := map[trace.GoID]*goroutine{}
	for {
		e, err := in.ReadEvent()
		if errors.Is(err, io.EOF) {
			if clock == nil {
				return errors.New("trace: no clock in it")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		switch e.Kind() {
		case trace.EventSync:
			if s := e.Sync().ClockSnapshot; s != nil && clock == nil {
				clock = s
			}
		case trace.EventStateTransition:
			t := e.StateTransition()
			if t.Resource.Kind != trace.ResourceGoroutine || clock == nil {
				continue
			}
			id := t.Resource.Goroutine()
			g := goroutines[id]
			if g == nil {
				g = &goroutine{work: otherWork}
				goroutines[id] = g
			}
			// The stack of the goroutine itself, which is that of the event when it moves itself.
			stack := t.Stack
			if stack == trace.NoStack && e.Goroutine() == id {
				stack = e.Stack()
			}
			if w := workOf(stack); w != "" {
				g.work = w
			}
			if c := callOf(stack); c != "" {
				g.call = c
			}
			old, state := t.Goroutine()
			if g.known && old == g.state {
				wall := func(t trace.Time) time.Time { return clock.Wall.Add(t.Sub(clock.Trace)) }
				take(interval{from: wall(g.since), to: wall(e.Time()), work: g.work, state: old, call: g.call, locked: g.locked})
			}
			g.state, g.since, g.known = state, e.Time(), true
			g.locked = state == trace.GoWaiting && t.Reason == "sync"
			if state == trace.GoNotExist {
				delete(goroutines, id)
			}
		}
	}
}
