package resolver

import (
	"encoding/binary"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
)

// maxRefusedRows is how many refused rows an answer lists.
const maxRefusedRows = 10_000

// applyImport stores a chunk of a file. A chunk begins with the first row that is
// missing, or lies before it: then only those of its rows are applied that were refused
// before.
func (m *Machine) applyImport(env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome) error {
	head, events, err := eventlog.DecodeImportHead(body)
	if err != nil {
		return err
	}
	a := m.accounts[env.Account]
	if a == nil {
		out.Refusal = notFound("", "no account has the number %016x", env.Account)
		return nil
	}
	next, known := a.Imports[head.File]
	before := head.FirstRow <= next && uint64(head.Rows) <= next-head.FirstRow
	switch {
	case !known && len(a.Imports) >= maxImports:
		out.Refusal = atLimit("file", "file: this account has imported %d files, the most it can remember", maxImports)
	case head.FirstRow > next:
		out.Refusal = invalid("first_row", "first_row must be %d, the first row of this file that is not stored yet", next)
	case before && head.ListsRefused:
		out.NextRow = next
		return m.retryRows(a, &head, env, events, rows, out)
	case before:
		r, err := eventlog.NewEventsReader(events)
		if err != nil {
			return err
		}
		var ev eventlog.Event
		for r.Next(&ev) {
			out.Events = append(out.Events, EventOutcome{Status: EventDuplicate})
			m.counters.Duplicates++
		}
		out.NextRow = next
		return r.Err()
	case head.FirstRow < next:
		out.Refusal = invalid("first_row", "first_row must be %d: rows before it are stored already", next)
	}
	if out.Refusal != nil {
		out.NextRow = next
		return nil
	}
	m.tx.flows.SetQuiet(!head.TriggerFlows)
	if err := m.applyList(a, env, events, rows, out, nil); err != nil {
		return err
	}
	m.react()
	m.tx.flows.SetQuiet(false)
	if head.ListsRefused {
		noteRefusedRows(a, &head, out.Events)
	}
	next += uint64(head.Rows)
	a.Imports[head.File] = next
	out.NextRow = next
	m.store.PutEntity(state.EntityKey(a.Number, state.EntityImport, string(head.File[:])), binary.LittleEndian.AppendUint64(nil, next))
	return nil
}

// eachRow calls event for the rows of a chunk that have one, in order, with the event's
// place in the record, and refused for the others.
func eachRow(head *eventlog.ImportHead, event func(i, row uint32), refused func(row uint32)) {
	absent, i := head.Refused, uint32(0)
	for place := range head.Rows {
		row := head.FirstRow + uint64(place)
		if row > math.MaxUint32 {
			return // of larger files the first 2³² rows are tried again
		}
		if len(absent) > 0 && absent[0] == place {
			absent = absent[1:]
			refused(uint32(row))
			continue
		}
		event(i, uint32(row))
		i++
	}
}

// noteRefusedRows remembers which rows of a new chunk were refused.
func noteRefusedRows(a *account.State, head *eventlog.ImportHead, events []EventOutcome) {
	name := account.RefusedRowsName(head.File)
	note := func(row uint32) { a.Sets.Set(name).Add(row) }
	eachRow(head, func(i, row uint32) {
		if int(i) < len(events) && events[i].Status == EventRefused {
			note(row)
		}
	}, note)
}

// retryRows applies those rows of a chunk that were refused before; the others are
// stored. A chunk without rows asks which rows, from its first on, are refused.
func (m *Machine) retryRows(a *account.State, head *eventlog.ImportHead, env eventlog.Envelope, events []byte, rows *query.Batch, out *Outcome) error {
	name := account.RefusedRowsName(head.File)
	refused := a.Sets.Members(name)
	if head.Rows == 0 && head.FirstRow <= math.MaxUint32 {
		it := refused.Iterator()
		for it.AdvanceIfNeeded(uint32(head.FirstRow)); it.HasNext() && len(out.RefusedRows) < maxRefusedRows; {
			out.RefusedRows = append(out.RefusedRows, it.Next())
		}
	}
	stored := roaring.New()
	eachRow(head, func(i, row uint32) {
		if !refused.Contains(row) {
			stored.Add(i)
		}
	}, func(uint32) {})
	if head.FirstRow+uint64(head.Rows) > math.MaxUint32 {
		stored.AddRange(0, uint64(head.Rows)) // none was remembered
	}
	m.tx.flows.SetQuiet(!head.TriggerFlows)
	if err := m.applyList(a, env, events, rows, out, stored); err != nil {
		return err
	}
	m.react()
	m.tx.flows.SetQuiet(false)
	eachRow(head, func(i, row uint32) {
		if int(i) < len(out.Events) && out.Events[i].Status != EventRefused && refused.Contains(row) {
			a.Sets.Set(name).Remove(row)
		}
	}, func(uint32) {})
	return nil
}
