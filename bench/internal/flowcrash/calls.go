package flowcrash

import (
	"fmt"
	"slices"
)

// call is a call that triggers a flow, with its key.
type call struct {
	*trigger
	key string
	// arrived reports that an effect with its key came: it has begun an enrolment.
	arrived bool
}

// began reports whether a call may have begun an enrolment at an instant. An
// acknowledged one did so before its answer. A request without an answer may lie in
// the socket of a frozen process for long, and be carried out when its caller has
// made others or was refused meanwhile.
func (c *call) began(atMs int64) bool {
	return (!c.refused || c.repeated) && atMs >= c.fromMs && (!c.acked || atMs <= c.toMs)
}

// must reports whether a call has begun an enrolment for certain.
func (c *call) must() bool { return c.acked || c.arrived }

// called finds for each of a person's enrolments the call that began it: each
// acknowledged call did, as did each with an effect; those refused at once did not;
// of the others it is not known. Late is how many enrolments began when the caller
// had given up or was refused.
func called(enrolments []enrolment, calls []call) (began []cause, late int, err error) {
	for i := range calls {
		c := &calls[i]
		busy := slices.ContainsFunc(enrolments, func(w enrolment) bool {
			return int64(w.StartedAt) <= c.toMs && (w.EndedAt == nil || int64(*w.EndedAt) >= c.fromMs)
		})
		if c.refused && !busy {
			return nil, 0, fmt.Errorf("the call with key %s was refused at %d, when no enrolment was in progress", c.key, c.toMs)
		}
	}
	m := matching{enrolments: enrolments, calls: calls, of: make([]int, len(enrolments)), taken: make([]bool, len(calls))}
	for i := 1; i < len(enrolments); i++ {
		if enrolments[i-1].EndedAt == nil || *enrolments[i-1].EndedAt > enrolments[i].StartedAt {
			return nil, 0, fmt.Errorf("enrolment %d began while enrolment %d was in progress", enrolments[i].Number, enrolments[i-1].Number)
		}
	}
	if !m.from(0) {
		return nil, 0, m.fault()
	}
	began = make([]cause, len(enrolments))
	for i, n := range m.of {
		began[i] = cause{atMs: int64(enrolments[i].StartedAt), key: calls[n].key}
		if began[i].atMs > calls[n].toMs {
			late++
		}
	}
	return began, late, nil
}

// matching gives each enrolment a call of its own.
type matching struct {
	enrolments []enrolment
	calls      []call
	of         []int // by enrolment
	taken      []bool
	// most is the first enrolment for which no call was ever found.
	most int
}

// from matches the enrolments from i on, so that none of the calls which must have
// begun one is left. Both are few.
func (m *matching) from(i int) bool {
	m.most = max(m.most, i)
	if i == len(m.enrolments) {
		for n := range m.calls {
			if m.calls[n].must() && !m.taken[n] {
				return false
			}
		}
		return true
	}
	for n := range m.calls {
		if m.taken[n] || !m.calls[n].began(int64(m.enrolments[i].StartedAt)) {
			continue
		}
		m.taken[n], m.of[i] = true, n
		if m.from(i + 1) {
			return true
		}
		m.taken[n] = false
	}
	return false
}

func (m *matching) fault() error {
	text := ""
	for i := range m.calls {
		c := &m.calls[i]
		text += fmt.Sprintf("; key %s at %d to %d, acknowledged: %v, refused: %v, arrived: %v", c.key, c.fromMs, c.toMs, c.acked, c.refused, c.arrived)
	}
	if m.most < len(m.enrolments) {
		return fmt.Errorf("enrolment %d began at %d, when no call began it%s", m.most+1, m.enrolments[m.most].StartedAt, text)
	}
	return fmt.Errorf("%d enrolments cannot be those of all calls that began one%s", len(m.enrolments), text)
}
