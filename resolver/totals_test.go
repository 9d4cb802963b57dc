package resolver

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/view"
)

// checkTotals compares the totals that are kept with sums over all accounts.
func checkTotals(t testing.TB, m *Machine) {
	t.Helper()
	var want account.Totals
	for _, a := range m.byIndex {
		want.Add(a.Totals(), 1)
	}
	if m.totals != want {
		t.Fatalf("behind record %d the totals are %+v, the sums over the accounts %+v", m.next-1, m.totals, want)
	}
}

// BenchmarkAccounts applies records of one event of one account, with all that the
// partition does under its lock, beside any number of other accounts. One op is one record.
func BenchmarkAccounts(b *testing.B) {
	for _, accounts := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("accounts=%d", accounts), func(b *testing.B) {
			r := newRecorder(b, DefaultSettings())
			for n := range accounts - 1 {
				r.m.addAccount(uint64(1_000_000 + n))
			}
			var published view.Published
			var stats atomic.Pointer[MachineStats]
			r.m.PublishAll(&published)
			for b.Loop() {
				env := r.envelope(eventlog.KindEvents)
				rec := eventlog.AppendEventCount(env.Append(nil), 1)
				rec = eventlog.AppendEvent(rec, &eventlog.Event{Type: []byte("seen"), Email: []byte("a@example.com")})
				if err := r.m.Apply(r.m.next, rec, &r.rows, &r.out); err != nil {
					b.Fatal(err)
				}
				r.m.PublishRecord(&published, env)
				s := r.m.Stats()
				stats.Store(&s)
				_ = r.m.GenerationBytes()
				r.rows.Reset()
			}
		})
	}
}
