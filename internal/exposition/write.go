package exposition

import (
	"bytes"
	"io"
	"strings"
)

// Type is a type of Prometheus' text format.
type Type string

// The types that are used.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
	Summary   Type = "summary"
)

// Metric describes a metric.
type Metric struct {
	Name string
	Type Type
	Unit string // "seconds", "bytes", "bytes per event"; empty for a plain number
	Help string
}

// renamed are samples of the process's library whose names break the format's rules:
// _count belongs to histograms and summaries.
var renamed = map[string]string{
	"go_cgo_calls_count": "go_cgo_calls_total",
	"go_gc_forced_count": "go_gc_forced_total",
	"go_cpu_count":       "go_cpus",
}

var byName = func() map[string]Metric {
	m := make(map[string]Metric, len(Metrics))
	for _, x := range Metrics {
		m[x.Name] = x
	}
	return m
}()

// Of returns the metric that a sample's name belongs to: of a histogram's
// x_bucket, x_sum and x_count it is x.
func Of(sample string) (Metric, bool) {
	if m, ok := byName[sample]; ok {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(sample, suffix); cut {
			m := byName[base]
			return m, m.Type == Histogram || m.Type == Summary && suffix != "_bucket"
		}
	}
	return Metric{}, false
}

// Write writes samples, one a line as VictoriaMetrics' library writes them, to w:
// grouped by metric in the order of their first samples, since the format allows a
// metric to be described once only.
func Write(w io.Writer, samples []byte) error {
	type family struct {
		metric Metric
		known  bool
		lines  []byte
	}
	var order []*family
	families := map[string]*family{}
	for line := range bytes.Lines(samples) {
		end := bytes.IndexAny(line, "{ ")
		if end <= 0 || line[0] == '#' {
			continue
		}
		name, rest := string(line[:end]), line[end:]
		if better := renamed[name]; better != "" {
			name = better
		}
		m, known := Of(name)
		if !known {
			m.Name = name
		}
		f := families[m.Name]
		if f == nil {
			f = &family{metric: m, known: known}
			families[m.Name] = f
			order = append(order, f)
		}
		f.lines = append(append(f.lines, name...), rest...)
	}
	var out bytes.Buffer
	out.Grow(len(samples) + len(samples)/2)
	for _, f := range order {
		if f.known {
			out.WriteString("# HELP " + f.metric.Name + " " + f.metric.Help + "\n# TYPE " + f.metric.Name + " " + string(f.metric.Type) + "\n")
		}
		out.Write(f.lines)
	}
	_, err := w.Write(out.Bytes())
	return err
}
