package resolver

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

func bought(who int, properties string) eventlog.Event {
	return eventlog.Event{Type: []byte("bought"), Email: fmt.Appendf(nil, "u%d@x.io", who), Properties: []byte(properties)}
}

// TestCatalogOfProperties: the catalog has what events and profiles had, in kinds and
// shares, after a checkpoint, too, and the same after a replay.
func TestCatalogOfProperties(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 7))
	d := newDurable(t, DefaultSettings())
	var log [][]byte
	submit := func(rec []byte) {
		log = append(log, rec)
		d.apply(rec)
	}
	for i := range 3000 {
		d.now += rng.Int64N(1000)
		ev := bought(rng.IntN(50), fmt.Sprintf(`{"value":%d,"plan":"p%d","n%d":null}`, rng.IntN(9), rng.IntN(3), rng.IntN(4)))
		if i%10 == 0 {
			ev.Attributes = fmt.Appendf(nil, `{"tier":"t%d","seats":%d}`, rng.IntN(3), rng.IntN(4))
		}
		env := d.envelope(eventlog.KindEvents)
		submit(appendEvents(env.Append(nil), []eventlog.Event{ev}))
		if i%700 == 0 {
			d.reload()
			log = append(log, nil) // the record that reload made
		}
	}
	v := d.view()
	s := v.EventTypes().Properties("bought")
	f, _ := s.Find([]string{"value"})
	switch {
	case s.Looked() < 1650 || s.Looked() > 1850: // 1000, half of the next 1000, a quarter of the last
		t.Errorf("looked at %d of 3000", s.Looked())
	case f == nil || f.Seen() != s.Looked() || f.Kinds[0] != 0 || len(f.Top()) != 9:
		t.Errorf("value is %+v of %d", f, s.Looked())
	}
	if f, known := s.Find([]string{"n1"}); f != nil || !known {
		t.Errorf("what is null is no value: %+v, %v", f, known)
	}
	if x, _ := v.EventTypes().Attributes().Find([]string{"attributes", "tier"}); x == nil || x.Seen() == 0 {
		t.Errorf("tier is %+v", x)
	}
	for _, x := range v.EventTypes().List() {
		if x.Key == "bought" && (x.LastSeenMs != d.now || x.FirstSeenMs > d.now) {
			t.Errorf("seen from %d to %d, now is %d", x.FirstSeenMs, x.LastSeenMs, d.now)
		}
	}

	again := newRecorder(t, DefaultSettings())
	for _, rec := range log {
		if rec == nil {
			again.command(access.CommandSessionDelete, access.SessionDelete{})
			continue
		}
		again.seq++
		again.apply(rec)
	}
	if x, y := hashOf(t, d.m), hashOf(t, again.m); x != y {
		t.Error("a replay leads to another state")
	}
	s.Base++ // as a part of the state that was forgotten in the hash would
	if x, y := hashOf(t, d.m), hashOf(t, again.m); x == y {
		t.Error("the catalog is no part of the hash")
	}
	s.Base--
}

// TestCatalogBegins: an account of older rules has a catalog from its first events under
// newer ones on, and until then the state of the older rules.
func TestCatalogBegins(t *testing.T) {
	t.Parallel()
	r := &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}
	b := testBootstrap(DefaultSettings())
	b.ApplyVersion = applyVersionCatalog - 1
	r.command(CommandBootstrap, b)
	r.eventsUnder(rulesCatalog-1, bought(1, `{"value":1}`))
	a := r.m.accounts[testAccount]
	if x := r.view().EventTypes().List()[0]; r.view().EventTypes().Properties("bought") != nil || x.LastSeenMs != 0 || a.HasCatalog || strings.Contains(string(must.JSON(a.Entity)), "catalog") {
		t.Fatalf("%+v", x)
	}
	r.events(bought(1, `{"value":2}`))
	if s := r.view().EventTypes().Properties("bought"); s == nil || s.Looked() != 1 || s.Base != 1 {
		t.Fatalf("%+v", s)
	}
}

// TestErasedLeavesTheCatalog: what only an erased person had is neither in the catalog
// nor in the store's files, whatever counters it had before; what others have stays.
func TestErasedLeavesTheCatalog(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	for i := range 30 {
		d.events(bought(i, fmt.Sprintf(`{"plan":"pro","id":"id-%d"}`, i)))
	}
	d.events(bought(100, `{"plan":"zqsecret1","zqsecret2":1}`))
	ev := bought(100, `{"id":"zqsecret3"}`)
	ev.Attributes = []byte(`{"zqsecret4":"zqsecret5","city":"Berlin"}`)
	d.events(ev)
	other := bought(1, `{}`)
	other.Attributes = []byte(`{"city":"Berlin"}`)
	d.events(other)
	d.reload()
	// The counter of the text is another's now; the text is in an older version.
	for i := range 60 {
		d.events(bought(i, fmt.Sprintf(`{"id":"late-%d"}`, i)))
	}
	holds := func() (n int) {
		newest, err := d.ckpt.List()
		if err != nil || len(newest) == 0 {
			t.Fatal(err)
		}
		dir := d.ckpt.Path(checkpoint.DirCheckpoints, checkpoint.Name(newest[len(newest)-1]), checkpoint.DirPebble)
		names, err := d.ckpt.FS.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			f, err := d.ckpt.FS.Open(d.ckpt.FS.PathJoin(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(b), "zqsecret")
		}
		return n
	}
	if holds() == 0 {
		t.Fatal("the test does not find what is stored")
	}
	o, _ := d.view().Profiles().Find(IdentityEmail, "u100@x.io")
	if r := d.command(CommandContactErase, ContactErase{ID: d.view().Profiles().ID(o).String()}).Refusal; r != nil {
		t.Fatal(r)
	}
	s, profiles := d.view().EventTypes().Properties("bought"), d.view().EventTypes().Attributes()
	for _, saved := range []string{string(s.Append(nil)), string(profiles.Append(nil))} {
		if strings.Contains(saved, "zqsecret") {
			t.Errorf("the catalog has %q", saved)
		}
	}
	if f, _ := profiles.Find([]string{"attributes", "city"}); f == nil || len(f.Top()) != 1 {
		t.Errorf("city is %+v", f)
	}
	d.reload()
	if n := holds(); n > 0 {
		t.Errorf("the store's files have %d of its texts", n)
	}
}
