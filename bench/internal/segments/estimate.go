package segments

import (
	"fmt"
	"time"
)

// PhaseTime is how long a part of a step took. What is proportional grows with
// the account, the rest is a fixed amount of work.
type PhaseTime struct {
	Name         string  `json:"name"`
	Seconds      float64 `json:"seconds"`
	Proportional bool    `json:"proportional"`
}

// estimate is what a larger step would take, by the one before.
type estimate struct {
	time   time.Duration
	memory int64
	disk   int64
}

// heapSlack is how far garbage lets the heap grow beyond what is live, at most.
const heapSlack = 2.0

// fixedBytes is what does not grow with the account: the document cache, two
// generations, Pebble's and the feed's buffers.
const fixedBytes = 1 << 30

// estimateStep extrapolates the last step to a number of profiles. Memory is
// what was live per profile, with room for garbage, and the bounds of what is
// bounded.
func estimateStep(last *Step, profiles int, historyMemory int64) estimate {
	f := float64(profiles) / float64(last.Profiles)
	seconds := 0.0
	for _, p := range last.Phases {
		if p.Proportional {
			seconds += p.Seconds * f
		} else {
			seconds += p.Seconds
		}
	}
	live := float64(last.Memory.WithSegments.HeapBytes-last.Memory.Bare.HeapBytes) * f
	disk := float64(last.DiskBytes) * f
	return estimate{
		time:   time.Duration(seconds * float64(time.Second)),
		memory: int64(live*heapSlack) + historyMemory + fixedBytes,
		disk:   int64(disk * 1.3),
	}
}

// room is what is left for a step.
type room struct {
	time   time.Duration
	memory int64
	disk   int64
}

// excess says why a step does not fit, nothing if it does.
func (e estimate) excess(r room) string {
	switch {
	case e.memory > r.memory:
		return fmt.Sprintf("it would take about %s of memory, and %s are allowed (--max-memory-mb)", bytesText(e.memory), bytesText(r.memory))
	case e.disk > r.disk:
		return fmt.Sprintf("it would take about %s more on disk, and %s are free", bytesText(e.disk), bytesText(r.disk))
	case e.time > r.time:
		return fmt.Sprintf("it would take about %v, and %v of the budget are left (--budget)", e.time.Round(time.Second), max(0, r.time).Round(time.Second))
	}
	return ""
}

// smaller are the sizes tried when one does not fit, the largest first.
func smaller(last, wanted int) (out []int) {
	for _, m := range []int{5, 3, 2} {
		if n := last * m; n < wanted {
			out = append(out, n)
		}
	}
	return out
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d B", n)
}
