package contest

import (
	"os"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/loader"
)

// meter measures the CPU time of a server and of the loader, which is this
// process.
type meter struct {
	pid          int
	server, self time.Duration
}

func startMeter(pid int) (meter, error) {
	server, err := child.UsageOf(pid)
	if err != nil {
		return meter{}, err
	}
	self, err := child.UsageOf(os.Getpid())
	if err != nil {
		return meter{}, err
	}
	return meter{pid, server.CPU, self.CPU}, nil
}

// phase adds what was used since the start to a phase's result.
func (m meter) phase(r *loader.Result) (Phase, error) {
	server, err := child.UsageOf(m.pid)
	if err != nil {
		return Phase{}, err
	}
	self, err := child.UsageOf(os.Getpid())
	if err != nil {
		return Phase{}, err
	}
	return newPhase(r, server.CPU-m.server, self.CPU-m.self, server.PeakRSSBytes), nil
}
