package resolver

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestReplayOfSharedNumber: a person with the number of an erased person keeps it as
// they wrote it, before and after the erasure, also when the redacted log is replayed;
// and what is refused, or left out, has the number in the log no longer.
func TestReplayOfSharedNumber(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) { // of looking at records before they are stored, or not
		w := &redactWorld{recorder: &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}, rng: rand.New(rand.NewPCG(seed, 1)), account: testAccount}
		w.do(CommandBootstrap, testBootstrap(DefaultSettings()))
		contact := func(c contacts.Create) string {
			var reply contacts.Reply
			if err := json.Unmarshal(w.do(contacts.CommandCreate, c).Reply, &reply); err != nil {
				t.Fatal(err)
			}
			return reply.ID
		}
		first := contact(contacts.Create{Email: "ada@x.io", Phone: "+49 30 1"})
		second := contact(contacts.Create{Email: "grace@x.io", Phone: "+49 30 1"})
		third := contact(contacts.Create{Email: "alan@x.io"})
		patch := func(id, phone string) { w.do(contacts.CommandUpdate, contacts.Update{ID: id, Phone: &phone}) }
		patch(second, "+49 (30) 1")
		w.do(CommandContactErase, ContactErase{ID: first})
		patch(third, "+49-30-1")
		env := w.env(eventlog.KindEvents)
		w.submit(env, appendEvents(env.Append(nil), []eventlog.Event{
			ev("external_id", "null", "phone", "+49/30/1"), ev("email", "alan@x.io", "phone", "+49.30.1"),
		}))
		w.redact()
		if seed%2 == 0 {
			patch(second, "+49 30-1")
		}
		w.redact()

		replayed := &recorder{t: t, m: testMachine(t)}
		var rows query.Batch
		var out Outcome
		for offset, rec := range w.log {
			if err := replayed.m.Apply(int64(offset), rec, &rows, &out); err != nil {
				t.Fatal(err)
			}
			for _, gone := range []string{"ada@x.io", "+49-30-1", "+49/30/1", "+49.30.1"} {
				if bytes.Contains(rec, []byte(gone)) {
					t.Errorf("record %d has %s: %q", offset, gone, rec)
				}
			}
		}
		want := "+49 (30) 1"
		if seed%2 == 0 {
			want = "+49 30-1"
		}
		for _, r := range []*recorder{w.recorder, replayed} {
			if got := r.profile(second).Newest(IdentityPhone); got != want {
				t.Errorf("Grace shows %q, expected %q", got, want)
			}
			if p := r.profile(third); len(p.Identities) != 1 {
				t.Errorf("Alan shows %+v", p.Identities)
			}
		}
		if x, y := hashOf(t, w.m), hashOf(t, replayed.m); x != y {
			t.Error("the state differs after a replay")
		}
	}
}
