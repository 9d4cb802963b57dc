package engine

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/internal/exposition"
)

// TestMetrics: what is written of logs of both kinds and of the group is in the table
// of metrics, and Prometheus' own linter has nothing to say of it.
func TestMetrics(t *testing.T) {
	for name, write := range map[string]func(b *bytes.Buffer){
		"files": func(b *bytes.Buffer) { writeFiles(b, file.Stats{}) },
		"topic": func(b *bytes.Buffer) {
			writeTopic(b, kafka.Stats{})
			writeMember(b, cluster.Stats{})
		},
	} {
		var samples, out bytes.Buffer
		write(&samples)
		for _, m := range regexp.MustCompile(`(?m)^(\w+)`).FindAllStringSubmatch(samples.String(), -1) {
			if _, known := exposition.Of(m[1]); !known {
				t.Errorf("%s: %s is not in the table of metrics", name, m[1])
			}
		}
		if err := exposition.Write(&out, samples.Bytes()); err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.New(&out).Lint()
		if err != nil || len(problems) > 0 || samples.Len() == 0 {
			t.Error(name, fmt.Sprint(problems), err)
		}
	}
}
