package profiles

import (
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// timeline answers GET /profiles/{id}/events, newest first. A cursor names a
// place in the order of events; events that arrive meanwhile with a time before
// it are on the later pages.
func (a *API) timeline(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	q := query.TimelineQuery{Account: c.Account, Limit: limit + 1}
	if q.Before, err = timelineCursor(c); err != nil {
		return nil, err
	}
	err = c.Read(func(v *resolver.View) (err error) {
		ordinal, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		q.Cut = v.Cut()
		q.Ordinals, err = v.Profiles().Ordinals(ordinal)
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, done, err := a.opts.Evaluation.Begin(c, q.Cut)
	if err != nil {
		return nil, err
	}
	defer done()
	entries, err := a.opts.History.Timeline(ctx, q)
	if err != nil {
		return nil, evaluation.HistoryError(err)
	}
	next := ""
	var room paging.Room
	n := 0
	for n < min(limit, len(entries)) && room.Take(&entries[n]) {
		n++
	}
	if len(entries) > n {
		entries = entries[:n]
		next = encodeTimelineCursor(entries[n-1].Key)
	}
	if err := c.Hold(room.Bytes); err != nil {
		return nil, err
	}
	return map[string]any{"events": record.Events(entries), "next": handler.CursorOrNull(next)}, nil
}

const timelineCursorBytes = 8 + 8 + 4

func encodeTimelineCursor(k query.TimelineKey) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(k.TimeMs))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.Offset))
	return paging.Encode(paging.Timeline, binary.LittleEndian.AppendUint32(b, k.Index))
}

func timelineCursor(c *handler.Call) (*query.TimelineKey, error) {
	b, err := c.Cursor(paging.Timeline, timelineCursorBytes)
	if b == nil {
		return nil, err
	}
	return &query.TimelineKey{
		TimeMs: int64(binary.LittleEndian.Uint64(b)),
		Offset: int64(binary.LittleEndian.Uint64(b[8:])),
		Index:  binary.LittleEndian.Uint32(b[16:]),
	}, nil
}
