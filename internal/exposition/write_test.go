package exposition

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

const root = "../.."

func lint(t *testing.T, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestWriteGroups: samples of a metric come together, whatever lies between them,
// and each metric is described once.
func TestWriteGroups(t *testing.T) {
	var out bytes.Buffer
	err := Write(&out, []byte(`muster_profiles{partition="0"} 1
muster_merges_total{partition="0"} 2
# TYPE muster_profiles counter
muster_profiles{partition="1"} 3
go_cgo_calls_count 4
muster_cluster_wait_seconds_bucket{le="+Inf"} 5
muster_cluster_wait_seconds_sum 6
muster_cluster_wait_seconds_count 5
strange 7
`))
	want := `# HELP muster_profiles Profiles in the state.
# TYPE muster_profiles gauge
muster_profiles{partition="0"} 1
muster_profiles{partition="1"} 3
# HELP muster_merges_total Merges of profiles.
# TYPE muster_merges_total counter
muster_merges_total{partition="0"} 2
# HELP go_cgo_calls_total Calls from Go to C.
# TYPE go_cgo_calls_total counter
go_cgo_calls_total 4
# HELP muster_cluster_wait_seconds Time that calls waited for the owner of a partition.
# TYPE muster_cluster_wait_seconds histogram
muster_cluster_wait_seconds_bucket{le="+Inf"} 5
muster_cluster_wait_seconds_sum 6
muster_cluster_wait_seconds_count 5
strange 7
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestTable: every metric of the table, with a sample, is one that Prometheus' own
// linter has nothing to say of, and its unit is in its name.
func TestTable(t *testing.T) {
	var samples bytes.Buffer
	seen := map[string]bool{}
	for _, m := range Metrics {
		if seen[m.Name] {
			t.Errorf("%s is in the table twice", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "\\\n") {
			t.Errorf("%s: help %q is not one plain sentence", m.Name, m.Help)
		}
		if unit, _, _ := strings.Cut(m.Unit, " "); unit != "" && !strings.Contains(m.Name, "_"+unit) {
			t.Errorf("%s does not name its unit %s", m.Name, unit)
		} else if unit == "" && regexp.MustCompile("_(seconds|bytes)").MatchString(m.Name) {
			t.Errorf("%s has no unit in the table", m.Name)
		}
		switch m.Type {
		case Histogram:
			fmt.Fprintf(&samples, "%[1]s_bucket{le=\"+Inf\"} 1\n%[1]s_sum 1\n%[1]s_count 1\n", m.Name)
		case Summary:
			fmt.Fprintf(&samples, "%[1]s{quantile=\"1\"} 1\n%[1]s_sum 1\n%[1]s_count 1\n", m.Name)
		default:
			fmt.Fprintf(&samples, "%s 1\n", m.Name)
		}
	}
	var out bytes.Buffer
	if err := Write(&out, samples.Bytes()); err != nil {
		t.Fatal(err)
	}
	lint(t, out.String())
}

// TestProcess: the library's own metrics of the process pass as well.
func TestProcess(t *testing.T) {
	var samples, out bytes.Buffer
	metrics.WriteProcessMetrics(&samples)
	if err := Write(&out, samples.Bytes()); err != nil {
		t.Fatal(err)
	}
	lint(t, out.String())
}

// TestTableIsWhatThereIs: each metric that the sources name is in the table and in
// docs/operations/monitoring.md, and the other way round; so also those of several nodes.
func TestTableIsWhatThereIs(t *testing.T) {
	named := map[string]string{}
	literal := regexp.MustCompile("[\"`](muster_[a-z_]+)[\"`{]")
	for _, dir := range []string{"api", "cluster", "cmd", "eventlog", "ingest", "internal", "messaging", "query", "resolver"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/exposition") {
				return err
			}
			b, err := os.ReadFile(path)
			counts := bytes.Contains(b, []byte("VictoriaMetrics/metrics")) || bytes.Contains(b, []byte("GetOrCreate"))
			for _, m := range literal.FindAllSubmatch(b, -1) {
				// Cookies, for example, are named likewise.
				if _, known := byName[string(m[1])]; known || counts {
					named[string(m[1])] = path
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "docs/operations/monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, docs, _ := strings.Cut(string(b), "\n## Metrics\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("`(muster_[a-z_]+)[`{]").FindAllStringSubmatch(docs, -1) {
		told[m[1]] = true
	}
	for name, path := range named {
		if _, ok := byName[name]; !ok {
			t.Errorf("%s names %s, which is not in the table", path, name)
		}
	}
	for _, m := range Metrics {
		if !strings.HasPrefix(m.Name, "muster_") {
			continue
		}
		if named[m.Name] == "" {
			t.Errorf("the table has %s, which no source names", m.Name)
		}
		if !told[m.Name] {
			t.Errorf("docs/operations/monitoring.md does not tell of %s", m.Name)
		}
		delete(told, m.Name)
	}
	for name := range told {
		t.Errorf("docs/operations/monitoring.md tells of %s, which is not in the table", name)
	}
}
