package resolver

import (
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
)

// Apply applies the record at the offset. Rows for history are appended to
// rows, the answer is written to out. An error is fatal: the record could not
// be understood or the store failed, and nothing may be applied after it.
func (m *Machine) Apply(offset int64, data []byte, rows *query.Batch, out *Outcome) error {
	if offset != m.next {
		return fmt.Errorf("record %d does not follow record %d", offset, m.next-1)
	}
	env, body, err := eventlog.DecodeEnvelope(data)
	if err != nil {
		return err
	}
	out.Reset(offset)
	m.next++
	m.logTime = max(m.logTime, env.StampMs)
	m.counters.Records++
	if !m.records.Add(env.ID) {
		out.Refusal = &Refusal{Code: "conflict", Message: "this record was applied before"}
		return nil
	}
	a := m.accounts[env.Account]
	m.begin(a, env, rows, out)
	if a != nil {
		// What falls due comes before what happens now.
		m.advance(dueBudget)
		a.Features.Advance(m.tx.on(a))
	}
	if err := m.applyKind(env, body, rows, out); err != nil {
		return err
	}
	if a != nil {
		m.react()
		a.Flows.FinishPublishing()
		m.updateBacklog(a)
		a.Erasure.EndRecord(m.tx.on(a))
	}
	m.tallyRecord(env)
	out.enrolments = m.tx.flows.Position()
	return nil
}

func (m *Machine) applyKind(env eventlog.Envelope, body []byte, rows *query.Batch, out *Outcome) error {
	switch env.Kind {
	case eventlog.KindEvents:
		return m.applyEvents(env, body, rows, out)
	case eventlog.KindImport:
		return m.applyImport(env, body, rows, out)
	case eventlog.KindContinue:
		return m.applyContinue()
	case eventlog.KindTick:
		m.applyTick()
		return nil
	case eventlog.KindChunk:
		m.applyChunk(env, body, out)
		return nil
	case eventlog.KindCommand:
		name, args, err := eventlog.DecodeCommand(body)
		if err != nil {
			return err
		}
		return m.applyCommand(env, name, args, rows, out)
	}
	return fmt.Errorf("%w: record of kind %d", ErrNewer, env.Kind)
}

// Skip passes over a record that cannot be applied. It must be called at each
// replay. Of the record its id is kept, where that can be read: by the ids a start tells
// whether a state is of its log.
func (m *Machine) Skip(offset int64, data []byte) error {
	if offset != m.next {
		return fmt.Errorf("record %d does not follow record %d", offset, m.next-1)
	}
	m.next++
	if env, _, err := eventlog.DecodeEnvelope(data); err == nil {
		m.records.Add(env.ID)
	}
	return nil
}
