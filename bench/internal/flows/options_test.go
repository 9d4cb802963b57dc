package flows

import (
	"math"
	"strings"
	"testing"
	"time"
)

func validOptions() Options {
	return Options{Flows: 100, Duration: time.Second, Profiles: 1000, Connections: 4, ProbesPerSecond: 10, Sleepers: 1000, Budget: time.Minute}
}

func TestFaultyOptionsAreNamed(t *testing.T) {
	o := validOptions()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Flows, o.Sleepers = 0, 0
	if err := o.Validate(); err != nil {
		t.Errorf("nothing to measure: %v", err)
	}
	for want, spoil := range map[string]func(*Options){
		"flows":       func(o *Options) { o.Flows = 1 },
		"rate":        func(o *Options) { o.RatePerSecond = math.NaN() },
		"duration":    func(o *Options) { o.Duration = time.Hour },
		"profiles":    func(o *Options) { o.Profiles = 0 },
		"connections": func(o *Options) { o.Connections = 0 },
		"probes":      func(o *Options) { o.ProbesPerSecond = 0.5 },
		"sleepers":    func(o *Options) { o.Sleepers = 999 },
		"budget":      func(o *Options) { o.Budget = 0 },
	} {
		o := validOptions()
		spoil(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

func TestTheTargetsRateIsAmongTheRates(t *testing.T) {
	o := validOptions()
	rates := o.rates(8000)
	l := Load{Without: &Phase{EventsPerSecond: 8000}}
	for _, rate := range rates {
		l.Paced = append(l.Paced, &Phase{OfferedPerSecond: rate})
	}
	if p := l.judged(); p == nil || p.OfferedPerSecond != 4000 {
		t.Errorf("of %v, the target belongs to %+v", rates, p)
	}
	o.RatePerSecond = 70
	if rates := o.rates(8000); len(rates) != 1 || rates[0] != 70 {
		t.Errorf("%v", rates)
	}
	l.Paced = []*Phase{{OfferedPerSecond: 70}}
	if p := l.judged(); p != l.Paced[0] {
		t.Error("the only rate is not judged")
	}
}
