package ledger

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/history"
)

func TestL1L2FaultsAreFound(t *testing.T) {
	a, b := history.Key{Key: "a", EventType: "visit", Rows: 1}, history.Key{Key: "b", EventType: "visit", Rows: 1}
	twice, other := a, a
	twice.Rows, other.EventType = 2, "order"
	for name, c := range map[string]struct {
		rows []history.Key
		want string // empty for none
	}{
		"all there":               {[]history.Key{a, b}, ""},
		"no answer and not there": {[]history.Key{a}, ""},
		"lost":                    {[]history.Key{b}, `"a" was acknowledged and is not`},
		"seen before":             {[]history.Key{a, b, a}, "in history again"},
		"twice":                   {[]history.Key{twice}, "in history 2 times"},
		"another type":            {[]history.Key{other}, "event type"},
		"never sent":              {[]history.Key{a, {Key: "c", Rows: 1}}, "never sent"},
	} {
		sent := map[string]*Event{"a": {Type: "visit", Acked: true}, "b": {Type: "visit"}}
		var f Faults
		for _, k := range c.rows {
			f.Found(k, sent[k.Key])
		}
		f.Lost(func(visit func(string, *Event)) {
			for _, key := range slices.Sorted(maps.Keys(sent)) {
				visit(key, sent[key])
			}
		})
		if err := f.Err(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var f Faults
	for i := range 50 {
		f.Add("fault %d", i)
	}
	if lines := strings.Split(f.Err().Error(), "\n"); len(lines) != MaxFaults+1 || lines[MaxFaults] != "and 38 more" {
		t.Errorf("%q", lines)
	}
}
