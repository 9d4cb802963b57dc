package cpuspeed

import (
	"math"
	"slices"
	"testing"
	"time"
)

var begin = time.Unix(1_700_000_000, 0)

func ms(n int) time.Time { return begin.Add(time.Duration(n) * time.Millisecond) }

// samples are 3 ms apart, in microseconds.
func samples(micros ...int) (all []sample) {
	for i, m := range micros {
		all = append(all, sample{ms(3 * i), time.Duration(m) * time.Microsecond})
	}
	return all
}

func TestSlowPhases(t *testing.T) {
	for name, c := range map[string]struct {
		in   []sample
		want []Phase
	}{
		"nothing":             {nil, nil},
		"always the same":     {samples(8, 8, 8, 8), nil},
		"twice is not slow":   {samples(8, 16, 8, 8), nil},
		"one slow":            {samples(8, 17, 8, 8), []Phase{{ms(0), ms(6)}}},
		"two phases":          {samples(8, 80, 90, 8, 8, 40, 8), []Phase{{ms(0), ms(9)}, {ms(12), ms(18)}}},
		"at the ends":         {samples(80, 8, 8, 8, 8, 80), []Phase{{ms(0), ms(3)}, {ms(12), ms(15)}}},
		"slow most of it":     {samples(8, 8, 80, 80, 80, 80, 80, 80, 80, 80, 80), []Phase{{ms(3), ms(30)}}},
		"a sample took no ns": {samples(0, 0, 0), nil},
	} {
		s := speedOf(c.in)
		if !slices.Equal(s.Phases, c.want) {
			t.Errorf("%s: %v, want %v", name, s.Phases, c.want)
		}
		sum, longest := 0.0, 0.0
		for _, p := range c.want {
			sum, longest = sum+p.To.Sub(p.From).Seconds(), max(longest, p.To.Sub(p.From).Seconds()*1e3)
		}
		if math.Abs(s.Slow-sum) > 1e-9 || math.Abs(s.LongestMillis-longest) > 1e-9 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := speedOf(samples(8, 80, 8)); s.Slowest != 10 || math.Abs(s.Watched-0.006) > 1e-9 {
		t.Errorf("%+v", s)
	}
}

// TestSettled: what was under way in a slow phase of 20 ms, or in the 20 ms after it, is not.
func TestSettled(t *testing.T) {
	s := Speed{Phases: []Phase{{ms(100), ms(120)}, {ms(300), ms(400)}, {ms(410), ms(413)}}}
	for _, c := range []struct {
		from, to int
		want     bool
	}{
		{0, 100, true}, {0, 101, false}, {110, 115, false}, {125, 126, false}, {139, 200, false},
		{140, 200, true}, {90, 500, false}, {450, 451, false}, {499, 600, false}, {500, 600, true},
	} {
		if got := s.Settled(ms(c.from), ms(c.to)); got != c.want {
			t.Errorf("from %d to %d ms: %v", c.from, c.to, got)
		}
	}
}

// TestWatch: a computation takes some time on any machine.
func TestWatch(t *testing.T) {
	for end := time.Now().Add(time.Minute); ; {
		w := Start()
		time.Sleep(10 * between) // as long as is watched
		if s := w.Stop(); s.Watched > 0 && s.Slowest >= 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing was measured in a minute")
		}
	}
}
