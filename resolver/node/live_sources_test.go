package node

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/sources"
)

// TestLiveEventsOfSources: people who watch see which source sent an event, by which call,
// also of one that was refused, whose write key they do not see.
func TestLiveEventsOfSources(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.close(t, n) }()
	if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, accessBootstrap()); err != nil {
		t.Fatal(err)
	}
	w, ok := n.Watch(testAccount)
	if !ok {
		t.Fatal("watching is refused")
	}
	defer w.Close()
	rec := (&eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{9}, StampMs: n.opts.Now().UnixMilli()}).Append(nil)
	rec = eventlog.AppendEventCount(rec, 2)
	for _, email := range []string{"ann@x.io", "bob@x.io"} {
		rec = eventlog.AppendEvent(rec, &eventlog.Event{Type: []byte("seen"), Email: []byte(email)})
	}
	out := resolver.Outcome{From: &resolver.EventsFrom{SourceID: "src_1", SourceName: "Shop", Calls: []string{"track", "page"}}}
	if err := n.Submit(t.Context(), testAccount, rec, &out); err != nil || out.From == nil {
		t.Fatal(err, out.From)
	}
	for _, call := range []string{"track", "page"} {
		if e := <-w.Events; e.SourceID != "src_1" || e.SourceName != "Shop" || e.Call != call {
			t.Errorf("%+v", e)
		}
	}
	n.NoteRefusedCall(&sources.Access{Account: testAccount, SourceID: "src_1", Name: "Shop"}, "track", []byte(`{"event":"Item Viewed","userId":"u-1","writeKey":"wk_secret"}`), "no reason")
	e := (<-w.Events).Refused
	if e == nil || e.SourceID != "src_1" || e.SourceName != "Shop" || e.Call != "track" || e.EventType != "Item Viewed" || e.Idents[resolver.IdentityExternalID] != "u-1" || strings.Contains(e.Body, "wk_secret") {
		t.Errorf("%+v", e)
	}
}
