package segments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/resolver"
)

// run is a measurement under way. The account is a new one at each size, so that
// a size is not measured with the events of the measurements before.
type run struct {
	o        *Options
	base     context.Context // without the budget's deadline
	a        *account
	profiles int
	deadline time.Time
	memory   int64 // allowed
	bare0    Memory
	earlier  int64 // events counted before the account was last opened
}

// defaultHistoryMemory is DuckDB's bound when none is given; see package
// query/duckdb.
const defaultHistoryMemory = 2_000_000_000

// Run measures. The report is valid also beside an error, as far as it got. The
// directory is the caller's; what was made in it is removed, but not after an error.
func Run(ctx context.Context, o Options) (out *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{o: &o, base: ctx, memory: o.MemoryBytes}
	out = &Report{Options: o, Machine: report.ThisMachine()}
	begun := time.Now()
	if out.AvailableBytes, err = child.AvailableBytes(); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if r.memory == 0 {
		r.memory = out.AvailableBytes / 5 * 4
	}
	historyMemory := o.HistoryMemory
	if historyMemory == 0 {
		historyMemory = defaultHistoryMemory
	}
	// Garbage is collected more often before the bound is passed; DuckDB's
	// memory is beside Go's.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(max(r.memory-historyMemory-fixedBytes/2, fixedBytes)))
	r.deadline = begun.Add(o.Budget)
	defer func() {
		err = errors.Join(err, r.drop(err != nil))
		out.Seconds = time.Since(begun).Seconds()
		out.conclude()
	}()
	if err := r.steps(ctx, out, historyMemory); err != nil {
		return out, err
	}
	if o.StaleReads > 0 {
		o.Logf("stale reads: %d events", o.StaleReads)
		if err := r.clear(ctx); err != nil {
			return out, err
		}
		if out.Stale, err = r.staleCheck(ctx); err != nil {
			return out, err
		}
		if _, err := r.a.verify(ctx, r.a.history, 0); err != nil {
			return out, fmt.Errorf("after the stale reads: %w", err)
		}
	}
	return out, nil
}

// steps grows the account as far as it goes.
func (r *run) steps(ctx context.Context, out *Report, historyMemory int64) error {
	sizes := r.o.sizes()
	for number := 1; len(sizes) > 0; number++ {
		n := sizes[0]
		sizes = sizes[1:]
		if len(out.Steps) > 0 {
			last := out.Steps[len(out.Steps)-1]
			why, err := r.excess(last, n, historyMemory)
			if err != nil {
				return err
			}
			if why != "" {
				out.Stopped = fmt.Sprintf("%d profiles were left out: %s", n, why)
				r.o.Logf("%s", out.Stopped)
				if n = r.largest(last, n, historyMemory); n == 0 {
					return nil
				}
				sizes = nil
			}
		}
		if err := r.fresh(ctx, number); err != nil {
			return err
		}
		s := &step{run: r, number: number, profiles: n, out: &Step{Profiles: n}}
		out.Steps = append(out.Steps, s.out)
		r.profiles = n
		if err := s.measure(ctx); errors.Is(err, errTimeOut) {
			out.Stopped = fmt.Sprintf("at %d profiles: %s", n, s.out.Incomplete)
			r.o.Logf("%s", out.Stopped)
			return nil
		} else if err != nil {
			return err
		}
	}
	if out.Stopped == "" {
		out.Stopped = fmt.Sprintf("at %d profiles, the most that were asked for (--max-profiles)", r.profiles)
	}
	return nil
}

// fresh replaces the account by an empty one.
func (r *run) fresh(ctx context.Context, number int) (err error) {
	if err := r.drop(false); err != nil {
		return err
	}
	dir := filepath.Join(r.o.Dir, fmt.Sprintf("size-%d", number))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r.earlier = 0
	if r.a, err = newAccount(ctx, dir, r.o.HistoryMemory, r.o.Seed); err != nil {
		return err
	}
	if r.bare0 == (Memory{}) {
		r.bare0, err = memoryNow()
	}
	return err
}

// drop closes the account, and removes its files unless they are to be kept.
func (r *run) drop(keep bool) error {
	if r.a == nil {
		return nil
	}
	// History need not catch up: it is not read any more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.base), time.Minute)
	defer cancel()
	err := r.a.close(ctx)
	if !keep {
		err = errors.Join(err, os.RemoveAll(r.a.dir))
	}
	r.a = nil
	return err
}

// excess says why a step to n profiles does not fit, nothing if it does.
func (r *run) excess(last *Step, n int, historyMemory int64) (string, error) {
	free, err := freeDiskBytes(r.o.Dir)
	if err != nil {
		return "", fmt.Errorf("room on disk: %w", err)
	}
	return estimateStep(last, n, historyMemory).excess(room{time.Until(r.deadline), r.memory, free}), nil
}

// largest is the largest size below n that fits, 0 when none does.
func (r *run) largest(last *Step, n int, historyMemory int64) int {
	for _, m := range smaller(last.Profiles, n) {
		if why, err := r.excess(last, m, historyMemory); err == nil && why == "" {
			return m
		}
	}
	return 0
}

// clear removes all segments that a step has left, and opens the node again if
// it was closed.
func (r *run) clear(ctx context.Context) error {
	if r.a.node == nil {
		if err := r.a.open(ctx); err != nil {
			return err
		}
	}
	var ids []string
	err := r.a.read(ctx, func(v *resolver.View) error {
		for _, s := range v.Segments().All() {
			ids = append(ids, s.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Those that refer to others may stand anywhere among those made in the same
	// millisecond: go over them until all are gone.
	for len(ids) > 0 {
		var left []string
		for _, id := range ids {
			var refused *resolver.Refusal
			if err := r.a.undefine(ctx, id); errors.As(err, &refused) {
				left = append(left, id)
			} else if err != nil {
				return err
			}
		}
		if len(left) == len(ids) {
			return fmt.Errorf("%d segments cannot be deleted", len(left))
		}
		ids = left
	}
	return nil
}
