package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/resolver"
)

// TestBadDefinitions: a definition that cannot be is refused with the place of
// the fault, whether it is to be saved, to replace another or to be previewed,
// and nothing is stored.
func TestBadDefinitions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	base := s.segment("Buyers", buyers)
	user := s.segment("User", fmt.Sprintf(`{"kind":"segment","segment_id":%q}`, base.ID))
	user = s.segment("User of the user", fmt.Sprintf(`{"match":"any","conditions":[%s,{"kind":"segment","segment_id":%q}]}`, berlin, user.ID))
	list := func() (out []segmentAnswer) {
		s.want("GET", "/segments?limit=1000", "", &out)
		for i := range out {
			s.live(out[i].ID)
		}
		s.want("GET", "/segments?limit=1000", "", &out)
		return out
	}
	stored := list()
	applied := func() int64 { return s.node.Stats()[0].Applied }

	all := func(conditions ...string) string {
		return `{"match":"all","conditions":[` + strings.Join(conditions, ",") + `]}`
	}
	deep := buyers
	for range 20 {
		deep = all(deep)
	}
	many := func(n int, condition string) string {
		return all(strings.Split(strings.Repeat(condition+"\n", n-1)+condition, "\n")...)
	}
	var different []string
	for i := range 10_000 {
		different = append(different, fmt.Sprintf(`{"kind":"list","list_id":"l%d"}`, i))
	}
	var values []string
	for i := range 1001 {
		values = append(values, fmt.Sprint(i))
	}
	activity := func(more string) string { return all(berlin, `{"kind":"activity","event":"x"`+more+`}`) }
	attribute := func(more string) string { return all(berlin, berlin, `{"kind":"attribute",`+more+`}`) }
	for name, x := range map[string]struct{ definition, path string }{
		"no object":               {`7`, "definition"},
		"a string":                {`"buyers"`, "definition"},
		"an empty object":         {`{}`, "kind"},
		"unknown kind":            {`{"kind":"magic"}`, "kind"},
		"kind of a wrong type":    {`{"kind":1}`, "kind"},
		"unknown field":           {activity(`,"evnt":"y"`), "conditions[1].evnt"},
		"field twice":             {activity(`,"event":"y"`), "conditions[1].event"},
		"empty group":             {all(), "conditions"},
		"empty inner group":       {all(berlin, all()), "conditions[1].conditions"},
		"group without a match":   {`{"conditions":[` + berlin + `]}`, "match"},
		"unknown match":           {`{"match":"most","conditions":[` + berlin + `]}`, "match"},
		"conditions of no list":   {`{"match":"all","conditions":{}}`, "conditions"},
		"condition of no object":  {all(berlin, `null`), "conditions[1]"},
		"event of a wrong type":   {all(`{"kind":"activity","event":5}`), "conditions[0].event"},
		"did of a wrong type":     {activity(`,"did":"no"`), "conditions[1].did"},
		"unknown operator":        {activity(`,"count":{"op":"~","value":1}`), "conditions[1].count.op"},
		"count of a wrong type":   {activity(`,"count":{"op":">=","value":"1"}`), "conditions[1].count.value"},
		"count of an array":       {activity(`,"count":{"op":">=","value":[1]}`), "conditions[1].count.value"},
		"between of one value":    {activity(`,"count":{"op":"between","value":[1]}`), "conditions[1].count.value"},
		"absurd count":            {activity(`,"count":{"op":">=","value":1e300}`), "conditions[1].count.value"},
		"window of nothing":       {activity(`,"window":{"last_days":0}`), "conditions[1].window.last_days"},
		"window of the future":    {activity(`,"window":{"last_days":-3}`), "conditions[1].window.last_days"},
		"absurd window":           {activity(`,"window":{"last_days":1e9}`), "conditions[1].window.last_days"},
		"more absurd window":      {activity(`,"window":{"last_days":1e400}`), "conditions[1].window.last_days"},
		"window of a wrong type":  {activity(`,"window":{"last_days":"30"}`), "conditions[1].window.last_days"},
		"unknown aggregate":       {activity(`,"aggregate":{"fn":"median","property":"v","op":">","value":1}`), "conditions[1].aggregate.fn"},
		"aggregate of nothing":    {activity(`,"aggregate":{"fn":"sum","op":">","value":1}`), "conditions[1].aggregate.property"},
		"where of no list":        {activity(`,"where":{}`), "conditions[1].where"},
		"where, unknown operator": {activity(`,"where":[{"property":"p","op":"like","value":"a"}]`), "conditions[1].where[0].op"},
		"unknown field of people": {attribute(`"field":"shoe","op":"=","value":1`), "conditions[2].field"},
		"value of a wrong type":   {attribute(`"field":"geo.city","op":"contains","value":3`), "conditions[2].value"},
		"no value":                {attribute(`"field":"geo.city","op":"="`), "conditions[2].value"},
		"a value too many":        {attribute(`"field":"geo.city","op":"exists","value":3`), "conditions[2].value"},
		"no time":                 {attribute(`"field":"created_at","op":"before","value":"yesterday"`), "conditions[2].value"},
		"value of an object":      {attribute(`"field":"geo.city","op":"=","value":{}`), "conditions[2].value"},
		"a long list":             {attribute(`"field":"attributes.n","op":"in","value":[` + strings.Join(values, ",") + `]`), "conditions[2].value"},
		"unknown channel":         {all(`{"kind":"consent","channel":"pigeon","status":"subscribed"}`), "conditions[0].channel"},
		"unknown status":          {all(`{"kind":"consent","channel":"sms","status":"maybe"}`), "conditions[0].status"},
		"empty list id":           {all(`{"kind":"list","list_id":""}`), "conditions[0].list_id"},
		"no such segment":         {all(berlin, `{"kind":"segment","segment_id":"seg_none"}`), "conditions[1].segment_id"},
		"too deep":                {deep, "conditions[0].conditions[0]"},
		"501 conditions":          {many(501, berlin), "definition"},
		"10,000 conditions":       {many(10_000, `{"kind":"list","list_id":"x"}`), "definition"},
		"10,000 different ones":   {all(different...), "definition"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range []struct{ method, path, name string }{
				{"POST", "/segments", `"name":"Bad",`}, {"PUT", "/segments/" + base.ID, `"name":"Bad",`}, {"POST", "/segments/preview", ""},
			} {
				status, a := s.do(call.method, call.path, `{`+call.name+`"definition":`+x.definition+`}`)
				if status != 400 || a.field() != "definition" || !strings.HasPrefix(a.Message, x.path) {
					t.Errorf("%s: %d %q %s\nwant %s …", call.method, status, a.field(), a.Message, x.path)
				}
			}
		})
	}

	// A segment that leads back to itself, at once or through others.
	for name, id := range map[string]string{"itself": base.ID, "through others": user.ID} {
		t.Run(name, func(t *testing.T) {
			status, a := s.do("PUT", "/segments/"+base.ID, fmt.Sprintf(`{"name":"Bad","definition":%s}`, all(berlin, fmt.Sprintf(`{"kind":"segment","segment_id":%q}`, id))))
			if status != 400 || a.field() != "definition" || !strings.Contains(a.Message, "conditions[1].segment_id must not lead back") {
				t.Errorf("%d %q %s", status, a.field(), a.Message)
			}
		})
	}

	now := list()
	for i := range now {
		now[i].AsOf = stored[i].AsOf
	}
	if !reflect.DeepEqual(now, stored) {
		t.Errorf("segments changed:\n%+v\nwere\n%+v", now, stored)
	}
	// What is no definition is not even in the log. (Ticks would be, but none is due.)
	before := applied()
	if status, _ := s.do("POST", "/segments", `{"name":"Bad","definition":`+deep+`}`); status != 400 || applied() != before {
		t.Errorf("%d, and the log grew by %d records", status, applied()-before)
	}
	account, _ := tokens.Account(s.token, tokens.Session)
	ok(t, s.node.Read(t.Context(), account, func(v *resolver.View) error {
		if st := v.Segments().Stats(); st.Segments != 3 || st.Leaves != 2 {
			t.Errorf("the engine keeps %+v", st)
		}
		return nil
	}))
	if !json.Valid([]byte(deep)) {
		t.Error("the test's own definition is at fault")
	}
}
