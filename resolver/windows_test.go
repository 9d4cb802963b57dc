package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// TestR1WindowsShareAStateFromARecordOn (R1): windows of older rules have a state each, until
// a record says that a newer build runs. From there on they share one, also behind a restart,
// and no member changes. Under the present rules they share from the beginning.
func TestR1WindowsShareAStateFromARecordOn(t *testing.T) {
	t.Parallel()
	for rules, apart := range map[int]int{rulesWindows - 1: 12, ApplyVersion: 1} {
		d := newDurableUnder(t, DefaultSettings(), rules)
		r := d.recorder
		ids := map[int]string{}
		for n := 1; n <= 12; n++ {
			ids[n] = r.segment(fmt.Sprintf(`{"kind":"activity","event":"opened","window":{"last_days":%d},"count":{"op":">=","value":1}}`, n))
		}
		states := func(want int) {
			t.Helper()
			if n := r.view().Segments().Stats().States; n != want {
				t.Fatalf("rules %d: %d states, want %d", rules, n, want)
			}
		}
		counts := func() (out string) {
			for n := 1; n <= 12; n++ {
				count, ok := r.view().Segments().Count(ids[n], r.now)
				out += fmt.Sprint(count, ok, " ")
			}
			return out
		}
		states(apart)
		for i := range 12 {
			r.now += dayMs / 2
			r.events(eventlog.Event{Type: []byte("opened"), ExternalID: fmt.Append(nil, "u", i)})
		}
		before := counts()
		d.reload()
		states(apart)
		r.rules(ApplyVersion)
		states(1)
		if after := counts(); after != before {
			t.Errorf("rules %d: members were %s and are %s", rules, before, after)
		}
		d.reload()
		states(1)
		r.now += 3 * dayMs
		r.events(eventlog.Event{Type: []byte("opened"), ExternalID: []byte("u0")})
		want := ""
		for n := 1; n <= 12; n++ {
			members := 1 // u0; u1 to u11 came half a day after each other, the last 3 days ago
			for i := 1; i < 12; i++ {
				if 3*dayMs+int64(11-i)*dayMs/2 < int64(n)*dayMs {
					members++
				}
			}
			want += fmt.Sprint(members, true, " ")
		}
		if got := counts(); got != want {
			t.Errorf("rules %d: members are %s, want %s", rules, got, want)
		}
	}
}
