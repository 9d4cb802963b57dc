package child

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	// user nice system idle iowait irq softirq steal: idle, iowait and steal are
	// not this machine's work.
	got, err := parseStat("cpu  100 20 30 4000 500 6 7 800 0 0\ncpu0 1 2 3\n")
	if want := 1630 * time.Millisecond; err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8"} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q passed as %v", bad, got)
		}
	}
}
