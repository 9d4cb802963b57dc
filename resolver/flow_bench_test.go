package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// BenchmarkEnrol is an event that enrols in a flow, whose first step waits.
func BenchmarkEnrol(b *testing.B) {
	for _, flowCount := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("flows=%d", flowCount), func(b *testing.B) {
			r := newRecorder(b, DefaultSettings())
			for range flowCount {
				r.flow(`{"name":"x","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"w","type":"wait","seconds":86400,"next":"t"},{"id":"t","type":"tag","add":["x"],"next":null}]}`)
			}
			batch := make([]eventlog.Event, 100)
			n := 0
			b.ResetTimer()
			for n < b.N {
				for i := range batch {
					batch[i] = ev("external_id", fmt.Sprint(n))
					n++
				}
				r.events(batch...)
				r.rows.Reset()
			}
			b.StopTimer()
		})
	}
}
