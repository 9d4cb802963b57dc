package loader

import "github.com/musterhq/muster/bench/internal/payload"

// swept is a sweep that a worker began when it had sent so many events.
type swept struct {
	sent     uint64
	from, to int
}

func (m *member) sweep(from, to int) {
	m.swept = append(m.swept, swept{m.worker.Sent(), from, to})
	m.worker.Sweep(from, to)
}

// Replay tells of every event that was sent so far: of which company and profile
// it is, its type, and whether it was acknowledged. It makes the requests again, so
// that nothing has to be kept of them while they are measured. It is called
// between phases.
func (f *Fleet) Replay(visit func(company int, profile uint64, eventType string, acked bool)) error {
	for _, m := range f.members {
		w, err := payload.NewWorker(f.spec, m.id, nil)
		if err != nil {
			return err
		}
		acked, sweeps := m.acked, m.swept
		for w.Sent() < m.worker.Sent() {
			for len(sweeps) > 0 && sweeps[0].sent == w.Sent() {
				w.Sweep(sweeps[0].from, sweeps[0].to)
				sweeps = sweeps[1:]
			}
			w.Pass(func(sequence, profile uint64, eventType string) {
				for len(acked) > 0 && acked[0].To <= sequence {
					acked = acked[1:]
				}
				visit(m.company, profile, eventType, len(acked) > 0 && acked[0].From <= sequence)
			})
		}
	}
	return nil
}
