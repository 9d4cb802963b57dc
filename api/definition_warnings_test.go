package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// TestWarningsOfProperties: previews warn of properties and attributes that there have
// never been, and of comparisons that no value can meet, and of nothing else.
func TestWarningsOfProperties(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for i := range 10 {
		s.event(fmt.Sprintf(`{"event_type":"bought","user":{"email":"p%d@x.io","attributes":{"plan":"pro","seats":3,"tags":["a"]}},"properties":{"value":%d,"plan":"pro","tags":["a",1],"item":{"sku":"x"},"gone":null}}`, i, i))
	}
	s.event(`{"event_type":"bought","user":{"email":"p1@x.io"},"properties":{"value":true}}`)
	where := func(filter string) string {
		return `{"kind":"activity","event":"bought","where":[` + filter + `]}`
	}
	const all = "11 events of the type bought that were looked at"
	for definition, warning := range map[string]string{
		where(`{"property":"value","op":">","value":1}`):                                                          "",
		where(`{"property":"value","op":"=","value":true}`):                                                       "",
		where(`{"property":"tags","op":"in","value":["a"]}`):                                                      "",
		where(`{"property":"tags","op":"=","value":1}`):                                                           "",
		where(`{"property":"item.sku","op":"exists"}`):                                                            "",
		where(`{"property":"plan","op":"after","value":"2026-01-01"}`):                                            "",
		where(`{"property":"a.b.c.d.e.f.g.h.i","op":"exists"}`):                                                   "", // deeper than is kept
		`{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`:                                   "",
		`{"kind":"attribute","field":"tags","op":"contains","value":"a"}`:                                         "",
		`{"kind":"attribute","field":"first_name","op":"=","value":"Ann"}`:                                        "",
		where(`{"property":"valeu","op":">","value":1}`):                                                          "where: none of the " + all + " has the property valeu; did you mean value?",
		where(`{"property":"sku","op":"exists"}`):                                                                 "where: none of the " + all + " has the property sku",
		where(`{"property":"gone","op":"not_exists"}`):                                                            "where: none of the " + all + " has the property gone",
		where(`{"property":"value","op":"!=","value":"5"}`):                                                       "where: value is compared with a text, but is a number in 91 %, a boolean in 9 % of those that have it among the " + all,
		where(`{"property":"plan","op":"in","value":[1,true]}`):                                                   "where: plan is compared with a number and a boolean, but is a text in 100 % of those that have it among the " + all,
		where(`{"property":"tags","op":"=","value":false}`):                                                       "where: tags is compared with a boolean, but is a list in 100 % of those that have it among the " + all,
		where(`{"property":"item","op":"=","value":"x"}`):                                                         "where: item is compared with a text, but is an object in 100 % of those that have it among the " + all,
		where(`{"property":"value","op":"in_last_days","value":3}`):                                               "where: value is compared with a time, which is a text, but is a number in 91 %, a boolean in 9 % of those that have it among the " + all,
		`{"kind":"attribute","field":"attributes.seat","op":"=","value":3}`:                                       "field: none of the 10 changes of profiles that were looked at has the attribute attributes.seat; did you mean attributes.seats?",
		`{"kind":"attribute","field":"attributes.seats","op":"=","value":"3"}`:                                    "field: attributes.seats is compared with a text, but is a number in 100 % of those that have it among the 10 changes of profiles that were looked at",
		`{"kind":"activity","event":"bought","aggregate":{"fn":"sum","property":"plan","op":">","value":1}}`:      "aggregate.property: plan must be a number for sum, but is a text in 100 % of those that have it among the " + all,
		`{"kind":"activity","event":"bought","aggregate":{"fn":"distinct","property":"plan","op":">","value":1}}`: "",
		`{"kind":"activity","event":"bought","aggregate":{"fn":"avg","property":"price","op":">","value":1}}`:     "aggregate.property: none of the " + all + " has the property price",
	} {
		var p struct{ Warnings []string }
		s.want("POST", "/segments/preview", `{"definition":{"match":"any","conditions":[`+definition+`]}}`, &p)
		want := []string{}
		if warning != "" {
			want = append(want, "conditions[0]."+warning)
		}
		if !reflect.DeepEqual(p.Warnings, want) {
			t.Errorf("%s\nwarns %q\nwant  %q", definition, p.Warnings, want)
		}
	}
	var saved struct{ Warnings []string }
	body, err := json.Marshal(map[string]any{"name": "x", "definition": json.RawMessage(where(`{"property":"valeu","op":">","value":1}`))})
	if err != nil {
		t.Fatal(err)
	}
	if s.want("POST", "/segments", string(body), &saved); len(saved.Warnings) != 1 {
		t.Errorf("a saved segment warns %q", saved.Warnings)
	}
}
