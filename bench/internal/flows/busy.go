package flows

import (
	"os"
	"runtime"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
)

// meter measures CPU time: the server's, this process's, and that of all others.
type meter struct {
	pid                 int
	begun               time.Time
	server, self, whole time.Duration
}

// used is what was used since a meter was started.
type used struct {
	elapsed, server, self time.Duration
	// others is the share of the machine's CPU time, 0 to 1, that other processes
	// and the kernel on nobody's behalf took.
	others float64
}

func startMeter(pid int) (m meter, err error) {
	m = meter{pid: pid, begun: time.Now()}
	m.server, m.self, m.whole, err = cpuTimes(pid)
	return m, err
}

func (m meter) stop() (u used, err error) {
	server, self, whole, err := cpuTimes(m.pid)
	if err != nil {
		return u, err
	}
	u = used{elapsed: time.Since(m.begun), server: server - m.server, self: self - m.self}
	rest := whole - m.whole - u.server - u.self
	u.others = max(0, rest.Seconds()/u.elapsed.Seconds()/float64(runtime.NumCPU()))
	return u, nil
}

func cpuTimes(pid int) (server, self, whole time.Duration, err error) {
	a, err := child.UsageOf(pid)
	if err != nil {
		return 0, 0, 0, err
	}
	b, err := child.UsageOf(os.Getpid())
	if err != nil {
		return 0, 0, 0, err
	}
	whole, err = child.MachineCPU()
	return a.CPU, b.CPU, whole, err
}
