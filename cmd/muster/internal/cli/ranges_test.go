package cli

import (
	"strings"
	"testing"
	"time"
)

func TestRange(t *testing.T) {
	for _, x := range []struct {
		args []string
		env  map[string]string
		want string // "" if it is taken
	}{
		{nil, nil, ""}, // the default stands, whatever it is
		{[]string{"--drain", "0s"}, nil, ""},
		{[]string{"--drain", "1h"}, nil, ""},
		{[]string{"--drain", "-1s"}, nil, `invalid value "-1s" of --drain: use at least 0s`},
		{[]string{"--drain", "61m"}, nil, `invalid value "61m" of --drain: use at most 1h`},
		{[]string{"--drain", "1"}, nil, `use a duration with a unit`},
		{[]string{"--cache=1MiB"}, nil, ""},
		{[]string{"--cache=0"}, nil, `invalid value "0" of --cache: use at least 1MiB`},
		{[]string{"--cache=2GiB"}, nil, `invalid value "2GiB" of --cache: use at most 1GiB`},
		{[]string{"--rate=0"}, nil, ""},
		{[]string{"--rate=1"}, nil, `invalid value "1" of --rate: use 0 or at least 1KiB`},
		{[]string{"--events=0"}, nil, `invalid value "0" of --events: use at least 1`},
		{nil, map[string]string{"MUSTER_EVENTS": "101"}, `invalid value "101" of MUSTER_EVENTS: use at most 100`},
		{nil, map[string]string{"MUSTER_EVENTS": "100"}, ""},
	} {
		f := New("test", "usage", new(strings.Builder))
		f.Duration("drain", 2*time.Hour, "")
		f.Range("drain", 0, int64(time.Hour))
		f.Size("cache", 5, "")
		f.Range("cache", 1<<20, 1<<30)
		f.Size("rate", 0, "")
		f.ZeroOrRange("rate", 1<<10, 1<<30)
		f.Int("events", 7, "")
		f.Range("events", 1, 100)
		_, err := f.Parse(x.args, func(k string) (string, bool) { v, ok := x.env[k]; return v, ok })
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%v %v: %v, want %q", x.args, x.env, err, x.want)
		}
	}
}
