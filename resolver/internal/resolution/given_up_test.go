package resolution

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// TestGivenUpIDOfMergedProfile: an anonymous id that a profile gave up leads to the profile that it
// was merged into, with whatever it comes, and is that profile's when the event is repeated. Its
// document is gone: looked for under its own number it stopped the partition.
func TestGivenUpIDOfMergedProfile(t *testing.T) {
	device := func(i int) []byte { return fmt.Appendf(nil, "device-%d", i) }
	for name, last := range map[string]eventlog.Event{
		"alone":              {AnonymousID: device(0)},
		"of a browser":       {AnonymousID: device(0), Public: true, Call: true},
		"with the e-mail":    {AnonymousID: device(0), Email: []byte("ann@x.io")},
		"with another's":     {AnonymousID: device(0), Email: []byte("bob@x.io")},
		"with a new one":     {AnonymousID: device(0), ExternalID: []byte("u-9")},
		"as the previous id": {PreviousID: device(0), ExternalID: []byte("u-2")},
		"as an external id":  {ExternalID: device(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			for i := range MaxAnonymousIDs + 5 {
				w.event(eventlog.Event{ExternalID: []byte("u-1"), AnonymousID: device(i)})
			}
			merged := w.owner(identifier.ExternalID, "u-1")
			w.event(eventlog.Event{Email: []byte("bob@x.io")})
			w.event(eventlog.Event{Email: []byte("ann@x.io")})
			r, _ := w.event(eventlog.Event{Email: []byte("ann@x.io"), ExternalID: []byte("u-1")})
			if len(r.Merged) != 1 || r.Merged[0].Ordinal != merged {
				t.Fatalf("%+v", r)
			}
			winner := r.Ordinal
			if got := w.document(winner); len(got.GivenUp) == 0 {
				t.Fatal("no id was given up")
			}
			var buf []byte
			h, _ := w.Hasher.HashIdentifier(identifier.Anonymous, device(0), &buf)
			if o := w.Owner(h); o != winner {
				t.Errorf("the id leads to %d, expected %d", o, winner)
			}
			r, refusal := w.event(last) // fails the test with an error
			if refusal != nil {
				t.Fatal(refusal)
			}
			if alone := len(last.Email)+len(last.ExternalID) == 0; alone && r.Ordinal != winner {
				t.Errorf("the event is of %d, expected %d", r.Ordinal, winner)
			}
			if string(last.Email) == "ann@x.io" && (r.Ordinal != winner || len(r.Merged) > 0) {
				t.Errorf("%+v", r)
			}
			p := w.LookUp(eventlog.Event{AnonymousID: device(0)})
			if again, err := w.Repeated(p, w.Root(winner), rules.Identifiers()); err != nil || again.Foreign {
				t.Errorf("repeated: %+v, %v", again, err)
			}
		})
	}
}
