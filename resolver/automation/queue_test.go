package automation

import (
	"bytes"
	"slices"
	"testing"
)

func FuzzWaitingEnrolment(f *testing.F) {
	f.Add((&deferredEnrolment{o: 7, atMs: 5, flows: []uint32{1, 300}, event: []byte("{}")}).append(nil))
	f.Add((&deferredEnrolment{}).append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again deferredEnrolment
		if e.decode(b) != nil {
			return
		}
		if err := again.decode(e.append(nil)); err != nil || again.o != e.o || again.atMs != e.atMs || !slices.Equal(again.flows, e.flows) || !bytes.Equal(again.event, e.event) {
			t.Fatalf("%+v comes back as %+v, %v", e, again, err)
		}
	})
}
