package cluster

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/report"
)

// Report is everything that was measured.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	Seconds float64      `json:"seconds"`
	Modes   []ModeReport `json:"modes"`
	// Once is what ClickHouse has at the end of ingest, by group.
	Once  map[string]Once `json:"once"`
	Moves *Moves          `json:"moves,omitempty"`
	// Targets are judged at the end.
	Targets []report.Target `json:"targets"`
}

// ModeReport is one way to send events.
type ModeReport struct {
	Mode contest.Mode `json:"mode"`
	// RecordBytes is the mean size of a record of the log.
	RecordBytes float64 `json:"record_bytes"`
	Rounds      []Round `json:"rounds"`
}

// Round is one measurement of everything.
type Round struct {
	// Produce is the bare client with a record in each request, ProduceFull with
	// full batches.
	Produce     Phase `json:"produce"`
	ProduceFull Phase `json:"produce_full_batches"`
	// Insert is the bare inserts of ClickHouse.
	Insert Phase    `json:"insert"`
	Groups []Loaded `json:"groups"`
}

// Loaded is one group's part of a round.
type Loaded struct {
	Group string `json:"group"`
	Nodes int    `json:"nodes"`
	// Route is where requests went.
	Route     Route `json:"route"`
	Saturated Phase `json:"saturated"`
	Paced     Phase `json:"paced"`
	// HistoryPerSecond is the events of the saturated phase by the time until
	// ClickHouse had all of them.
	HistoryPerSecond float64 `json:"history_events_per_second"`
	// HistorySeconds is how long that took after the phase.
	HistorySeconds float64 `json:"history_seconds"`
}

func (l Loaded) name() string {
	nodes := "1 node"
	if l.Nodes > 1 {
		nodes = fmt.Sprintf("%d nodes", l.Nodes)
	}
	return nodes + ", " + string(l.Route)
}

// Phase is one phase of load. CPU times are per event, in microseconds; those of
// Kafka and ClickHouse are 0 where they are shared.
type Phase struct {
	report.Phase
	BytesPerSecond   float64 `json:"bytes_per_second,omitempty"`
	NodesMicros      float64 `json:"nodes_cpu_us_per_event"`
	KafkaMicros      float64 `json:"kafka_cpu_us_per_event"`
	ClickHouseMicros float64 `json:"clickhouse_cpu_us_per_event"`
	LoaderMicros     float64 `json:"loader_cpu_us_per_event"`
	// Others is the share of the machine's CPU time that other processes took.
	Others float64 `json:"others_cpu"`
}

// startMeter measures the CPU time of nodes, none for the bare clients, of Kafka and
// of ClickHouse. The last two are among the others where they are shared.
func (b *backing) startMeter(nodes []int) (child.Meter, error) {
	kafka, clickHouse := b.pids()
	return child.StartMeter(nodes, kafka, clickHouse)
}

// stop adds what a meter of startMeter has measured.
func (p *Phase) stop(m child.Meter) error {
	used, err := m.Stop()
	if err != nil {
		return err
	}
	per := p.PerEvent
	p.NodesMicros, p.KafkaMicros, p.ClickHouseMicros = per(used.Groups[0]), per(used.Groups[1]), per(used.Groups[2])
	p.LoaderMicros, p.Others = per(used.Self), used.Others
	return nil
}

const (
	// wantSingle is how much of bare produce with a record a request a group must ingest in single
	// events, wantBatch how much of that in full batches in batches.
	wantSingle, wantBatch = 0.75, 0.25
	// wantAwaySeconds is how long a partition that moves may be away.
	wantAwaySeconds = 10
)

// conclude judges what was measured.
func (r *Report) conclude() {
	r.Targets = nil
	for i := range r.Modes {
		m := &r.Modes[i]
		if len(m.Rounds) == 0 {
			continue
		}
		for j, l := range m.Rounds[0].Groups {
			bare, of, want := "bare produce, a record a request", func(r *Round) *Phase { return &r.Produce }, wantSingle
			if m.Mode.Batch > 0 {
				bare, of, want = "bare produce, full batches", func(r *Round) *Phase { return &r.ProduceFull }, wantBatch
			}
			v := report.Over(m.Rounds, func(r *Round) float64 {
				return report.Ratio(r.Groups[j].Saturated.EventsPerSecond, of(r).EventsPerSecond)
			}).Median
			r.Targets = append(r.Targets, report.AtLeast(fmt.Sprintf("%s, %s, by %s", m.Mode.Name, l.name(), bare), v, want))
		}
	}
	if r.Moves != nil {
		r.Targets = append(r.Targets, r.Moves.targets()...)
	}
}
