package server

import (
	"maps"
	"testing"
)

func TestMetric(t *testing.T) {
	const text = "# TYPE lag gauge\nlag{partition=\"0\"} 3\nlag{partition=\"11\"} 0\nlag_max{partition=\"0\"} 9\nitems 2\n"
	for name, want := range map[string]map[string]float64{
		"lag": {`partition="0"`: 3, `partition="11"`: 0}, "items": {"": 2}, "none": {},
	} {
		if got, err := Metric([]byte(text), name); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := Metric([]byte("lag{} much\n"), "lag"); err == nil {
		t.Errorf("passed as %v", got)
	}
}
