package resolver

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/eventtypes"
)

// TestEventTypesAreDescribedAndHidden: what people say of a type is in the state, its
// hash, checkpoints and the audit log, and changes nothing of what is done with events.
func TestEventTypesAreDescribedAndHidden(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	text := func(s string) *string { return &s }
	yes, no := true, false
	r.must(eventtypes.CommandDefine, by(eventtypes.Define{Name: "Item returned"}, "usr_1"))
	before := hashOf(t, d.m)
	r.must(eventtypes.CommandUpdate, by(eventtypes.Update{Key: "item_returned", Description: text("  Sent by the shop\n"), Hidden: &yes}, "usr_1"))
	x := r.view().EventTypes().Get("item_returned")
	if x.Description != "Sent by the shop" || !x.Hidden || x.Name != "Item returned" {
		t.Fatalf("%+v", x)
	}
	if hashOf(t, d.m) == before {
		t.Error("the hash does not see it")
	}
	// What is left out stays.
	r.must(eventtypes.CommandUpdate, by(eventtypes.Update{Key: "item_returned", Hidden: &no}, "usr_1"))
	if x = r.view().EventTypes().Get("item_returned"); x.Description != "Sent by the shop" || x.Hidden {
		t.Errorf("%+v", x)
	}
	r.must(eventtypes.CommandUpdate, by(eventtypes.Update{Key: "item_returned", Hidden: &yes}, "usr_1"))
	list, err := r.view().Audit().Changes("event_type", "item_returned", 0, 10)
	if err != nil || len(list) != 4 || list[0].Action != "event_type.update" || len(list[2].Fields) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	for want, args := range map[string]eventtypes.Update{
		"not_found description": {Key: "item_lost", Description: text("x")},
		"invalid description":   {Key: "item_returned", Description: text(strings.Repeat("ä", 501))},
	} {
		code, _, _ := strings.Cut(want, " ")
		r.refusedWhole(code, eventtypes.CommandUpdate, args)
	}
	r.must(eventtypes.CommandUpdate, eventtypes.Update{Key: "item_returned", Description: text(strings.Repeat("ä", 500))})
	// A checkpoint has it.
	d.reload()
	r = d.recorder
	if x = r.view().EventTypes().Get("item_returned"); x.Description != strings.Repeat("ä", 500) || !x.Hidden {
		t.Errorf("after a restart: %+v", x)
	}
}
