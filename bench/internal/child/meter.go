package child

import (
	"os"
	"runtime"
	"time"
)

// Meter measures the CPU time of groups of processes, of this process and of all
// others, from its start on.
type Meter struct {
	groups [][]int
	begun  time.Time
	from   Used
}

// Used is what was used since a [Meter] was started.
type Used struct {
	Elapsed time.Duration
	// Groups is CPU time by group, Self that of this process.
	Groups []time.Duration
	Self   time.Duration
	// PeakRSSBytes is the most memory that one of the processes had resident so far.
	PeakRSSBytes int64
	// Others is the share of the machine's CPU time, 0 to 1, that other processes
	// took, and the kernel for no process.
	Others float64

	whole time.Duration // of the machine
}

// StartMeter starts measuring groups of processes, given by their process ids.
func StartMeter(groups ...[]int) (m Meter, err error) {
	m = Meter{groups: groups, begun: time.Now()}
	m.from, err = m.read()
	return m, err
}

// Stop returns what was used. It may be called again.
func (m Meter) Stop() (u Used, err error) {
	if u, err = m.read(); err != nil {
		return u, err
	}
	u.Elapsed = time.Since(m.begun)
	u.Self -= m.from.Self
	rest := u.whole - m.from.whole - u.Self
	for i := range u.Groups {
		u.Groups[i] -= m.from.Groups[i]
		rest -= u.Groups[i]
	}
	u.Others = max(0, rest.Seconds()/u.Elapsed.Seconds()/float64(runtime.NumCPU()))
	return u, nil
}

func (m Meter) read() (u Used, err error) {
	u.Groups = make([]time.Duration, len(m.groups))
	for i, pids := range m.groups {
		for _, pid := range pids {
			of, err := UsageOf(pid)
			if err != nil {
				return u, err
			}
			u.Groups[i] += of.CPU
			u.PeakRSSBytes = max(u.PeakRSSBytes, of.PeakRSSBytes)
		}
	}
	self, err := UsageOf(os.Getpid())
	if err != nil {
		return u, err
	}
	u.Self = self.CPU
	u.whole, err = MachineCPU()
	return u, err
}
