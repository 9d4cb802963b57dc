package uploads

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// The bounds of a window of events, which is one record: smaller than one of muster
// import, since live events wait while it is applied.
const (
	eventRows  = 1000
	eventBytes = 1 << 20
)

// events takes files of past events.
type events struct {
	chunk   *importer.Chunk
	checker *importer.Checker
	stored  uint64          // rows that the state has, or refused
	refused *roaring.Bitmap // of them, when the import began or continued: they are tried again
	before  uint64          // of them when the import began
	resumed bool            // before is known
}

func (s *Uploads) newEvents(u *upload) (*events, error) {
	t, err := importer.ToNode(s.opts.Node, u.account, u.Plan.TriggerFlows, s.opts.Now, s.opts.Rand)
	if err != nil {
		return nil, err
	}
	checker, err := importer.NewChecker(false, s.opts.Now)
	if err != nil {
		return nil, err
	}
	var file [32]byte
	if n, err := hex.Decode(file[:], []byte(u.Hash)); err != nil || n != len(file) {
		return nil, &faultError{fmt.Errorf("the stored file has no name: %q", u.Hash)}
	}
	e := &events{chunk: importer.NewChunk(t, file), checker: checker}
	if u.Status == api.ImportRunning {
		e.before, e.resumed = u.Stored, true
	}
	return e, nil
}

func (e *events) begin(ctx context.Context) (uint64, error) {
	var err error
	if e.stored, e.refused, err = e.chunk.Next(ctx); err == nil && !e.resumed {
		e.before, e.resumed = e.stored, true
	}
	return e.stored, err
}

func (e *events) full(rows, bytes int) bool { return rows >= eventRows || bytes >= eventBytes }

var errOtherImport = errors.New("another import of this file runs at the same time")

// take stores the rows that the state does not have yet, and tries those again that it
// refused. Those that it had before the import are duplicates. Others are of a window
// whose end a crash hid.
func (e *events) take(ctx context.Context, first uint64, rows []importer.Row) (r windowResult, err error) {
	if err := e.retry(ctx, first, rows, &r); err != nil {
		return r, err
	}
	for len(rows) > 0 && first < e.stored {
		switch reason := e.checker.Check(&rows[0]); {
		case e.wasRefused(first):
		case reason != "":
			r.refused = append(r.refused, api.ImportRefusal{Line: rows[0].Line, Reason: reason})
		case first < e.before:
			r.duplicates++
		default:
			r.taken++
		}
		rows, first = rows[1:], first+1
	}
	if len(rows) == 0 {
		return r, nil
	}
	e.chunk.Reset(first, false)
	for i := range rows {
		e.chunk.Add(&rows[i])
	}
	s, err := e.chunk.Store(ctx)
	if err != nil {
		return r, err
	}
	if want := first + uint64(len(rows)); s.Next != want {
		e.stored = s.Next
		return r, fmt.Errorf("after row %d the next is %d: %w", want, s.Next+1, errOtherImport)
	}
	e.stored = s.Next
	r.add(&s)
	return r, nil
}

func (r *windowResult) add(s *importer.Stored) {
	r.taken += s.Accepted
	r.duplicates += s.Duplicates
	for _, x := range s.Refused {
		r.refused = append(r.refused, api.ImportRefusal{Line: x.Line, Reason: x.Reason})
	}
}

func (e *events) wasRefused(row uint64) bool {
	return row < e.stored && row <= math.MaxUint32 && e.refused.Contains(uint32(row))
}

// retry tries those rows of a window again that the state refused before.
func (e *events) retry(ctx context.Context, first uint64, rows []importer.Row, r *windowResult) error {
	e.chunk.Reset(first, true)
	some := false
	for i := range rows {
		if !e.wasRefused(first + uint64(i)) {
			if first+uint64(i) >= e.stored {
				break
			}
			e.chunk.Pass()
			continue
		}
		e.chunk.Add(&rows[i])
		some = true
	}
	if !some {
		return nil
	}
	s, err := e.chunk.Store(ctx)
	if err == nil {
		r.add(&s)
	}
	return err
}
