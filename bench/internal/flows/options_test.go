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

func TestTheTargetsRatesAreAmongTheRates(t *testing.T) {
	o := validOptions()
	rates := o.rates(8000, 3000)
	l := Load{Without: phase("", 0, 8000), With: phase("", 0, 3000)}
	for _, rate := range rates {
		l.Paced = append(l.Paced, phase("", rate, 0))
	}
	if j := l.judged(); len(j) != 2 || j[0].OfferedPerSecond != 1500 || j[1].OfferedPerSecond != 4000 {
		t.Errorf("of %v, the targets belong to %+v", rates, j)
	}
	o.RatePerSecond = 70
	if rates := o.rates(8000, 3000); len(rates) != 1 || rates[0] != 70 {
		t.Errorf("%v", rates)
	}
	l.Paced = []*Phase{phase("", 70, 0)}
	if j := l.judged(); len(j) != 1 || j[0].Phase != l.Paced[0] {
		t.Error("the only rate is not judged")
	}
}
