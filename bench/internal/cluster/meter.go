package cluster

import (
	"os"
	"runtime"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
)

// parties are the processes whose CPU time is told apart, by what they do.
type parties struct {
	nodes, kafka, clickHouse []int
}

// cpu is CPU time by what it was spent on. Kafka and ClickHouse are among the
// others where they are shared.
type cpu struct {
	nodes, kafka, clickHouse, self, whole time.Duration
}

// meter measures CPU time from its start on.
type meter struct {
	of    parties
	begun time.Time
	from  cpu
}

func startMeter(of parties) (m meter, err error) {
	m = meter{of: of, begun: time.Now()}
	m.from, err = of.used()
	return m, err
}

// stop returns what was used, and the share of the machine's CPU time, 0 to 1,
// that others took.
func (m meter) stop() (used cpu, others float64, err error) {
	to, err := m.of.used()
	if err != nil {
		return used, 0, err
	}
	used = cpu{to.nodes - m.from.nodes, to.kafka - m.from.kafka, to.clickHouse - m.from.clickHouse, to.self - m.from.self, to.whole - m.from.whole}
	rest := used.whole - used.nodes - used.kafka - used.clickHouse - used.self
	return used, max(0, rest.Seconds()/time.Since(m.begun).Seconds()/float64(runtime.NumCPU())), nil
}

func (p parties) used() (c cpu, err error) {
	for _, group := range []struct {
		pids []int
		into *time.Duration
	}{{p.nodes, &c.nodes}, {p.kafka, &c.kafka}, {p.clickHouse, &c.clickHouse}, {[]int{os.Getpid()}, &c.self}} {
		for _, pid := range group.pids {
			u, err := child.UsageOf(pid)
			if err != nil {
				return c, err
			}
			*group.into += u.CPU
		}
	}
	c.whole, err = child.MachineCPU()
	return c, err
}
