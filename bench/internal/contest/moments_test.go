package contest

import (
	"os"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/musterhq/muster/bench/internal/loader"
)

func TestMoments(t *testing.T) {
	h := hdrhistogram.New(1, 1_000_000, 2)
	for range 99 {
		_ = h.RecordValue(1000)
	}
	_ = h.RecordValue(50_000)
	empty := hdrhistogram.New(1, 1_000_000, 2)
	got := momentsOf(500*time.Millisecond, []loader.Slot{{Events: 100, Latency: h}, {Latency: empty}, {Events: 7, Latency: h}}, []use{{1.5, 10}, {0.5, 20}})
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	a, b := got[0], got[1]
	if a.Seconds != 0.5 || a.EventsPerSecond != 200 || int(a.P50Millis+.5) != 1 || a.MaxMillis < 49 || a.MaxMillis > 51 || a.Cores != 1.5 || a.RSSBytes != 10 {
		t.Errorf("%+v", a)
	}
	if b.Seconds != 1 || b.EventsPerSecond != 0 || b.P99Millis != 0 || b.Cores != 0.5 || b.RSSBytes != 20 {
		t.Errorf("%+v", b)
	}
}

// This process takes processor time itself meanwhile.
func TestWatch(t *testing.T) {
	for range 20 { // on a busy machine it may get none
		if watchesItself(t) || t.Failed() {
			return
		}
	}
	t.Error("no processor time was seen")
}

// watchesItself reports whether processor time was seen that this process took.
func watchesItself(t *testing.T) bool {
	stop, out := make(chan struct{}), make(chan []use, 1)
	go watch(os.Getpid(), 50*time.Millisecond, stop, out)
	n := 0
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
		n++
	}
	close(stop)
	var most float64
	uses := <-out
	for _, u := range uses {
		most = max(most, u.cores)
		if u.rss < 1<<20 {
			t.Errorf("%+v", u)
		}
	}
	t.Logf("%d steps: %+v", n, uses)
	return most > 0
}
