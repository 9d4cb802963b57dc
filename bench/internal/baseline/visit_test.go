package baseline

import (
	"testing"

	"github.com/valyala/fastjson"
)

func TestVisitSeesEveryField(t *testing.T) {
	v := fastjson.MustParse(`{"events":[{"a":"xy","n":2.5,"o":{"deep":[1,"z",{"k":true}]}},{"a":null}]}`)
	got := visit(v)
	// Keys: events, a, n, o, deep, k, a. Strings: xy, z.
	want := totals{fields: 7, bytes: len("eventsanodeepka") + len("xyz"), sum: 3.5}
	if got != want {
		t.Fatalf("visit gave %+v, want %+v", got, want)
	}
}
