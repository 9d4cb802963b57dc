package flows

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
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
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, 0, fmt.Errorf("reading CPU time: %w", err)
	}
	whole, err = parseStat(string(text))
	return a.CPU, b.CPU, whole, err
}

// parseStat is the time in which the processors did something for somebody here,
// of the first line of /proc/stat.
func parseStat(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %.100q", line)
	}
	var busy time.Duration
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		busy += time.Duration(n) * (time.Second / 100)
	}
	return busy, nil
}
