package loader

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/bench/internal/payload"
)

// MaxConnections is the most connections of a fleet.
const MaxConnections = 4096

// Target is where and how events are sent.
type Target struct {
	// Address is IP:PORT on the loopback interface.
	Address string
	// Path is the request's path.
	Path string
	// Header holds further header fields, as name and value.
	Header [][2]string
	// Expect is what an acknowledgement must hold.
	Expect Expect
}

// Head is the request's head for a body of that many bytes.
func (t Target) Head(bodyBytes int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		t.Path, t.Address, bodyBytes)
	for _, h := range t.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// Fleet is the connections of a load. Its phases are run one after the other.
type Fleet struct {
	// Interval is how long the parts of a phase are that it is also told by, see
	// [Result.Slots]; 0 for none.
	Interval time.Duration
	// Each has every request told one by one, see [Result.Waits].
	Each bool

	spec    payload.Spec
	members []*member
}

// Seat is where one connection of a fleet sends, and for whom. Each company has
// known profiles of its own, as many as the spec says.
type Seat struct {
	Target  Target
	Company int
}

// member is one connection with its requests and what became of them.
type member struct {
	number  int // its place in the fleet
	id      int // its worker's number
	company int
	target  Target
	worker  *payload.Worker
	judge   *judge
	perCall uint64
	acked   []Range
	swept   []swept
	// deadline bounds the calls of the phase under way.
	deadline time.Time
	// conn is nil while there is no connection. Others only set its deadline.
	conn atomic.Pointer[Conn]
}

// NewFleet prepares the connections; they are opened when first used.
func NewFleet(target Target, spec payload.Spec, connections int) (*Fleet, error) {
	if connections < 1 || connections > MaxConnections {
		return nil, fmt.Errorf("connections must be 1 to %d, not %d", MaxConnections, connections)
	}
	return NewFleetOf(slices.Repeat([]Seat{{Target: target}}, connections), spec, 0)
}

// NewFleetOf prepares one connection for each seat. Its workers are numbered from
// first on, so that their keys and new profiles are others than those of fleets
// before.
func NewFleetOf(seats []Seat, spec payload.Spec, first int) (*Fleet, error) {
	if len(seats) < 1 || len(seats) > MaxConnections {
		return nil, fmt.Errorf("connections must be 1 to %d, not %d", MaxConnections, len(seats))
	}
	f := &Fleet{spec: spec}
	for i, s := range seats {
		if err := CheckLoopback(s.Target.Address); err != nil {
			return nil, err
		}
		w, err := payload.NewWorker(spec, first+i, s.Target.Head)
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, &member{
			number: i, id: first + i, company: s.Company, target: s.Target, worker: w,
			judge:   newJudge(s.Target.Expect, spec.Batch),
			perCall: uint64(spec.EventsPerRequest()),
		})
	}
	return f, nil
}

// Close closes the connections.
func (f *Fleet) Close() {
	for _, m := range f.members {
		m.hangUp()
	}
}

// Acked are the events acknowledged so far, in all phases.
func (f *Fleet) Acked() []Range {
	var all []Range
	for _, m := range f.members {
		all = append(all, m.acked...)
	}
	return all
}

// NewProfiles is how many profiles beyond the known ones were sent so far.
func (f *Fleet) NewProfiles() uint64 {
	var n uint64
	for _, m := range f.members {
		n += m.worker.NewProfiles()
	}
	return n
}

const dialTimeout = 5 * time.Second

// call sends the next request and judges the answer.
func (m *member) call() error {
	conn := m.conn.Load()
	if conn == nil {
		var err error
		if conn, err = Dial(m.target.Address, dialTimeout); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		m.conn.Store(conn)
		if err := conn.SetDeadline(m.deadline); err != nil {
			return err
		}
	}
	request, first := m.worker.Next()
	answer, err := conn.Do(request)
	if err != nil {
		m.hangUp()
		return fmt.Errorf("no answer: %w", err)
	}
	err = m.judge.check(answer)
	if answer.Closing {
		m.hangUp()
	}
	if err != nil {
		return err
	}
	m.acked, err = addRange(m.acked, m.company, m.id, first, first+m.perCall)
	return err
}

// expire sets the instant at which calls of open connections fail.
func (m *member) expire(at time.Time) {
	if conn := m.conn.Load(); conn != nil {
		// It fails only on a connection that is gone, whose calls fail anyway.
		_ = conn.SetDeadline(at)
	}
}

func (m *member) hangUp() {
	if conn := m.conn.Swap(nil); conn != nil {
		conn.Close()
	}
}
