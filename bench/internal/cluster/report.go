package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/loader"
)

// Report is everything that was measured.
type Report struct {
	Options Options      `json:"options"`
	CPUs    int          `json:"cpus"`
	Go      string       `json:"go"`
	Seconds float64      `json:"seconds"`
	Modes   []ModeReport `json:"modes"`
	// Once is what ClickHouse has at the end of ingest, by group.
	Once  map[string]Once `json:"once"`
	Moves *Moves          `json:"moves,omitempty"`
	// Targets are judged at the end.
	Targets []Target `json:"targets"`
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
	Events           uint64  `json:"events"`
	Requests         uint64  `json:"requests"`
	Failed           uint64  `json:"failed_requests"`
	Failure          string  `json:"first_failure,omitempty"`
	Seconds          float64 `json:"seconds"`
	EventsPerSecond  float64 `json:"events_per_second"`
	OfferedPerSecond float64 `json:"offered_per_second,omitempty"`
	BytesPerSecond   float64 `json:"bytes_per_second,omitempty"`
	P50Millis        float64 `json:"p50_ms"`
	P99Millis        float64 `json:"p99_ms"`
	P999Millis       float64 `json:"p999_ms"`
	MaxMillis        float64 `json:"max_ms"`
	NodesMicros      float64 `json:"nodes_cpu_us_per_event"`
	KafkaMicros      float64 `json:"kafka_cpu_us_per_event"`
	ClickHouseMicros float64 `json:"clickhouse_cpu_us_per_event"`
	LoaderMicros     float64 `json:"loader_cpu_us_per_event"`
	// Others is the share of the machine's CPU time that other processes took.
	Others float64 `json:"others_cpu"`
}

func (p *Phase) latencies(h *hdrhistogram.Histogram) {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	p.P50Millis, p.P99Millis, p.P999Millis, p.MaxMillis = ms(50), ms(99), ms(99.9), float64(h.Max())/1000
}

func (p *Phase) cpu(c cpu, others float64) {
	per := func(d time.Duration) float64 { return ratio(d.Seconds()*1e6, float64(p.Events)) }
	p.NodesMicros, p.KafkaMicros, p.ClickHouseMicros, p.LoaderMicros, p.Others = per(c.nodes), per(c.kafka), per(c.clickHouse), per(c.self), others
}

func newPhase(r *loader.Result) Phase {
	p := Phase{Events: r.Events, Requests: r.Requests, Failed: r.Failed, Seconds: r.Elapsed.Seconds(), EventsPerSecond: r.EventsPerSecond()}
	p.latencies(r.Latency)
	if r.FirstFailure != nil {
		p.Failure = r.FirstFailure.Error()
	}
	return p
}

// Spread is the median of a figure over the rounds, its least and its most.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func newSpread(values []float64) (s Spread) {
	if len(values) == 0 {
		return s
	}
	v := slices.Sorted(slices.Values(values))
	return Spread{(v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]}
}

// ratio is a/b, and 0 when there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// over is a figure of each round.
func (m *ModeReport) over(value func(*Round) float64) Spread {
	var values []float64
	for i := range m.Rounds {
		values = append(values, value(&m.Rounds[i]))
	}
	return newSpread(values)
}

// Target is a number to reach: at least Want, or at most if AtMost is set.
type Target struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Want   float64 `json:"want"`
	AtMost bool    `json:"at_most"`
	Met    bool    `json:"met"`
}

const (
	// wantOfProduce is how much of bare produce a group must ingest.
	wantOfProduce = 0.5
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
			for _, bare := range []struct {
				name string
				of   func(*Round) *Phase
			}{
				{"bare produce, a record a request", func(r *Round) *Phase { return &r.Produce }},
				{"bare produce, full batches", func(r *Round) *Phase { return &r.ProduceFull }},
			} {
				v := m.over(func(r *Round) float64 {
					return ratio(r.Groups[j].Saturated.EventsPerSecond, bare.of(r).EventsPerSecond)
				}).Median
				r.Targets = append(r.Targets, Target{Name: fmt.Sprintf("%s, %s, by %s", m.Mode.Name, l.name(), bare.name), Value: v, Want: wantOfProduce, Met: v >= wantOfProduce})
			}
		}
	}
	if r.Moves != nil {
		r.Targets = append(r.Targets, r.Moves.targets()...)
	}
}
