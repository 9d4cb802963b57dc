package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/deployment"
)

// shipped are secrets for the composition.
var shipped = map[string]string{"MUSTER_CLUSTER_SECRET": strings.Repeat("5", 64), "CLICKHOUSE_PASSWORD": "b", "GRAFANA_PASSWORD": "c"}

// nodeEnvironment is the environment of a Muster node of docker-compose.yml, with
// what the image adds.
func nodeEnvironment(t *testing.T, service string) map[string]string {
	t.Helper()
	p, err := deployment.Load(t.Context(), "../..", shipped)
	ok(t, err)
	out := map[string]string{}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	ok(t, err)
	for _, m := range regexp.MustCompile(`(MUSTER_\w+)=(\S+)`).FindAllStringSubmatch(string(dockerfile), -1) {
		out[m[1]] = m[2]
	}
	for k, v := range p.Services[service].Environment {
		out[k] = *v
	}
	return out
}

// TestCompositionSetsFlags: each variable of the composition is a flag's.
func TestCompositionSetsFlags(t *testing.T) {
	t.Parallel()
	code, _, help := muster(t, "", "serve", "--help")
	if code != exitOK {
		t.Fatalf("--help ends with %d", code)
	}
	set := 0
	for k := range nodeEnvironment(t, "muster-1") {
		if !strings.HasPrefix(k, "MUSTER_") {
			continue
		}
		set++
		if !strings.Contains(help, "["+k+"]") {
			t.Errorf("%s is no flag's", k)
		}
	}
	if set < 10 {
		t.Errorf("%d variables", set)
	}
}

// TestMetricsAreThere: alerts and dashboards read metrics, with labels, that the
// binary exports with a log in files or with one in Kafka, which runs as the
// composition says; and docs/operations/monitoring.md has all that are exported, no others.
func TestMetricsAreThere(t *testing.T) {
	t.Parallel()
	exported := map[string][]string{} // labels by name
	files := serve(t, t.TempDir())
	files.export(exported)
	_, inFiles := exported["muster_log_failed"]
	if !inFiles {
		t.Errorf("no metrics of a log in files")
	}

	args := kafkaArgs(t) // or skips
	for k, v := range composed(t, args) {
		args = append(args, "--"+strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(k, "MUSTER_"), "_", "-")), v)
	}
	node := serve(t, t.TempDir(), args...)
	node.export(exported)

	queries, err := deployment.Queries("../..")
	ok(t, err)
	for _, q := range queries {
		selectors, err := deployment.Scan(q.Expr)
		ok(t, err)
		for _, s := range selectors {
			if !ours(s.Metric) {
				continue
			}
			labels, there := exported[s.Metric]
			if !there {
				t.Errorf("%s: %s is not exported", q.Where, s.Metric)
			}
			for _, l := range s.Labels {
				if l != "job" && !slices.Contains(labels, l) {
					t.Errorf("%s: %s has no label %s", q.Where, s.Metric, l)
				}
			}
		}
	}

	_, docs, _ := strings.Cut(readFile(t, "../../docs/operations/monitoring.md"), "\n## Metrics\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(muster_\\w+)(?:\\{[a-z_,]+\\})?`").FindAllStringSubmatch(docs, -1) {
		documented[m[1]] = true
		_, there := exported[m[1]]
		if _, histogram := exported[m[1]+"_bucket"]; !there && !histogram {
			t.Errorf("docs/operations/monitoring.md has %s, which is not exported", m[1])
		}
	}
	for name := range exported {
		if strings.HasPrefix(name, "muster_") && !documented[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] && !documented[name] {
			t.Errorf("docs/operations/monitoring.md does not have %s", name)
		}
	}
}

// composed are the flags of a node as the composition sets them, but for what
// names places of its own or is in args.
func composed(t *testing.T, args []string) map[string]string {
	t.Helper()
	out := nodeEnvironment(t, "muster-1")
	for k := range out {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(k, "MUSTER_"), "_", "-"))
		switch {
		case !strings.HasPrefix(k, "MUSTER_"), slices.Contains(args, flag):
			delete(out, k)
		}
	}
	for _, place := range []string{"DATA", "LISTEN", "CREDENTIALS", "ADVERTISE"} {
		delete(out, "MUSTER_"+place)
	}
	out["MUSTER_CHECKPOINTS"] = "file://" + t.TempDir()
	return out
}

func ours(metric string) bool {
	return strings.HasPrefix(metric, "muster_") || strings.HasPrefix(metric, "process_") || strings.HasPrefix(metric, "go_")
}

// export adds what the server exports once it has done a bit of everything that
// has a metric of its own.
func (s *server) export(to map[string][]string) {
	s.t.Helper()
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.console("GET", "/catalog", "", nil)
	s.preview(`{"kind":"activity","event":"seen"}`)
	s.untilMetric(`muster_history_rows 1`)
	res, err := http.Get(s.origin + "/metrics")
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	series := regexp.MustCompile(`(?m)^([a-zA-Z_:]\w*)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`(\w+)="`)
	for _, m := range series.FindAllStringSubmatch(string(b), -1) {
		if _, there := to[m[1]]; !there {
			to[m[1]] = nil
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(to[m[1]], l[1]) {
				to[m[1]] = append(to[m[1]], l[1])
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	return string(b)
}

// TestReadmeHasTheFlags: the table of the README is what --help prints.
func TestReadmeHasTheFlags(t *testing.T) {
	t.Parallel()
	_, _, help := muster(t, "", "serve", "--help")
	flags := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (--[a-z-]+) (\S*)\n +(.*?)(?: \(default .*\))? \[MUSTER_\w+\]$`).FindAllStringSubmatch(help, -1) {
		flags[m[1]] = m[3]
	}
	if len(flags) < 40 {
		t.Fatalf("%d flags in\n%s", len(flags), help)
	}
	_, table, _ := strings.Cut(readFile(t, "../../README.md"), "\n## Configuration\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(--[a-z-]+)`[^|]*\\| (.*?) \\|[^|]*\\|$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = m[2]
	}
	for name, text := range flags {
		if rows[name] != text {
			t.Errorf("README.md says of %s %q, --help %q", name, rows[name], text)
		}
	}
	for name := range rows {
		if flags[name] == "" {
			t.Errorf("README.md has %s, which is no flag of serve", name)
		}
	}
}
