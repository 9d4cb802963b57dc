package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
	"github.com/musterhq/muster/resolver"
)

const (
	// firstPause and longestPause are between tries of an import that cannot continue now.
	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
	// longestThrottle bounds how long the importer leaves the node to others after a window.
	longestThrottle = 5 * time.Second
)

// run works off what is queued, one import at a time, until ctx ends.
func (s *Uploads) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.followOwners()
		s.tidy(ctx)
		if u := s.next(); u != nil {
			s.work(ctx, u)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// next is the import to continue with: the first in the queue whose account is here.
func (s *Uploads) next() (first *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for account, files := range s.mu.files {
		here := s.opts.Node.Owns(s.opts.Node.PartitionOf(account))
		for _, u := range files {
			if u.started() && (here || u.Cancel) && (first == nil || u.Queue < first.Queue) {
				first = u
			}
		}
	}
	if first != nil {
		first.busy = true
	}
	return first
}

// work works an import off, and says on it how it ended.
func (s *Uploads) work(ctx context.Context, u *upload) {
	defer func() {
		s.mu.Lock()
		u.busy = false
		s.mu.Unlock()
	}()
	pause := firstPause
	for {
		err := s.importFile(ctx, u)
		var refused *resolver.Refusal
		var fault *faultError
		status, why := api.ImportDone, ""
		switch {
		case err == nil:
		case errors.Is(err, errChanged):
			continue
		case errors.Is(err, errCancelled):
			status = api.ImportCancelled
		case ctx.Err() != nil, errors.Is(err, resolver.ErrNotOwner):
			if !u.cancelled(s) {
				return // it continues later, here or after a start
			}
			status = api.ImportCancelled
		case errors.As(err, &refused):
			status, why = api.ImportFailed, refused.Message
		case errors.As(err, &fault):
			status, why = api.ImportFailed, fault.Error()
		default:
			// Overload, a full disk, history that does not answer: what is stored stays.
			s.opts.Logger.Warn("an import waits", "upload", u.ID, "err", err)
			s.mu.Lock()
			u.Error = "waiting: " + err.Error()
			s.mu.Unlock()
			if !sleep(ctx, pause) {
				return
			}
			s.followOwners()
			pause = min(2*pause, longestPause)
			continue
		}
		if u.Refused > 0 {
			err = u.writeResult()
		} else {
			err = nil
		}
		if err == nil {
			s.mu.Lock()
			err = s.end(u, status, why)
			s.mu.Unlock()
		}
		if err == nil {
			return
		}
		s.opts.Logger.Error("an import cannot be ended", "upload", u.ID, "err", err)
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// errCancelled reports that a user cancelled the import, errChanged that its file was
// changed and must be read again.
var (
	errCancelled = errors.New("cancelled")
	errChanged   = errors.New("the file was changed")
)

// faultError is why a file cannot be imported, whatever is tried.
type faultError struct{ error }

// sleep reports whether the whole pause passed.
func sleep(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// windowResult says what became of the rows of a window.
type windowResult struct {
	taken, duplicates uint64
	refused           []api.ImportRefusal
}

// taker takes the rows of a file, a window at a time.
type taker interface {
	// begin says how many rows of the file are stored.
	begin(ctx context.Context) (stored uint64, err error)
	// full reports whether so many rows of so many bytes are a window.
	full(rows, bytes int) bool
	// take stores the rows, of which first is the number of the first. It may be repeated.
	take(ctx context.Context, first uint64, rows []importer.Row) (windowResult, error)
}

// importFile continues with an import where it is, to the end of the file.
func (s *Uploads) importFile(ctx context.Context, u *upload) error {
	if u.cancelled(s) {
		return errCancelled
	}
	r, err := u.plan(&u.Plan)
	if err != nil {
		return &faultError{err}
	}
	if r.fault != "" {
		return &faultError{errors.New(r.fault)}
	}
	var t taker
	if u.Kind == api.ImportPeople {
		t, err = s.newPeople(u)
	} else {
		t, err = s.newEvents(u)
	}
	if err != nil {
		return err
	}
	stored, err := t.begin(ctx)
	if err != nil {
		return err
	}
	var damage *damageError
	if err := u.checkContent(ctx); errors.As(err, &damage) {
		s.opts.Logger.Error("the file of an import is damaged; "+textAgain, "file", damage.path, "reason", damage.reason)
		return &faultError{errors.New(damage.failure())}
	} else if err != nil {
		return err
	}
	f, err := os.Open(u.path(nameContent))
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := importer.NewRows(f, r.options)
	if err != nil {
		return &faultError{err}
	}
	if err := s.begun(u, min(stored, u.Rows)); err != nil {
		return err
	}
	for n := uint64(0); n < u.Read; n++ {
		var row importer.Row
		if err := rows.Next(&row); err != nil {
			return &faultError{fmt.Errorf("the stored file cannot be read at row %d: %w", n+1, err)}
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for more := true; more; {
		if u.cancelled(s) {
			return errCancelled
		}
		began := s.opts.Now()
		var window []importer.Row
		bytes := 0
		for len(window) == 0 || !t.full(len(window), bytes) {
			var row importer.Row
			if err := rows.Next(&row); errors.Is(err, io.EOF) {
				more = false
				break
			} else if err != nil {
				return &faultError{err}
			}
			row.JSON, row.Cells = slices.Clone(row.JSON), nil
			window = append(window, row)
			bytes += len(row.JSON)
		}
		if len(window) == 0 {
			break
		}
		result, err := t.take(ctx, u.Read, window)
		if err != nil {
			return err
		}
		took := s.opts.Now().Sub(began)
		if err := s.progress(u, len(window), &result, 2*took); err != nil {
			return err
		}
		// Others come first: half of the time is theirs.
		if more && !sleep(ctx, min(took, longestThrottle)) {
			return ctx.Err()
		}
		s.followOwners() // other accounts may come and go during a long import
		if more && s.erasuresDue(ctx, u.account) {
			s.tidy(ctx)
			return errChanged
		}
	}
	if u.Read != u.Rows {
		return &faultError{fmt.Errorf("the stored file has %d rows instead of %d; %s", u.Read, u.Rows, textAgain)}
	}
	return nil
}

func (u *upload) cancelled(s *Uploads) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return u.Cancel
}

// begun notes that an import continues.
func (s *Uploads) begun(u *upload, stored uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Error = ""
	if u.Status == api.ImportRunning {
		return nil
	}
	before := u.saved
	u.Status, u.StartedMs, u.Stored = api.ImportRunning, s.opts.Now().UnixMilli(), stored
	if err := u.save(); err != nil {
		u.saved = before
		return err
	}
	return nil
}

// progress makes durable what a window came to.
func (s *Uploads) progress(u *upload, rows int, r *windowResult, took time.Duration) error {
	lines, err := refusedLines(r.refused)
	if err != nil {
		return err
	}
	if len(lines) > 0 {
		if err := appendFile(u.path(nameRefused), u.RefusedBytes, lines); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := u.saved
	u.Read += uint64(rows)
	u.Taken += r.taken
	u.Duplicates += r.duplicates
	u.Refused += uint64(len(r.refused))
	u.RefusedBytes += int64(len(lines))
	u.Error = ""
	if err := u.save(); err != nil {
		u.saved = before
		return err
	}
	s.mu.rows.taken += r.taken
	s.mu.rows.duplicates += r.duplicates
	s.mu.rows.refused += uint64(len(r.refused))
	u.rate = float64(rows) / max(took.Seconds(), 1e-3)
	for _, x := range r.refused {
		if len(u.refusals) == showRefusals {
			break
		}
		u.refusals = append(u.refusals, x)
	}
	return nil
}
