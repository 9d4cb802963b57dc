package resolver

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/orders"
)

// FuzzStandardEvents sends the standard events of shops with arbitrary properties: a refund takes off
// no more than its order, the account has the revenue of its profiles, and nothing changes when
// all is sent again.
func FuzzStandardEvents(f *testing.F) {
	f.Add(`{"order_id":"1","total":59.97,"currency":"eur","items":[{"product_id":"p","quantity":2,"price":3.5}]}`, `{"order_id":"1","amount":9.97}`, `{"cart_id":"c","items":[],"total":0}`)
	f.Add(`{"order_id":"1","total":1,"currency":"EUR"}`, `{"order_id":"1"}`, `{"items":[{}]}`)
	f.Add(`{"order_id":"1","total":0.00005,"currency":"EUR"}`, `{"order_id":"1","amount":99999999999.9999}`, `{"items":null}`)
	f.Add(`{"order_id":"2"}`, `{"order_id":1}`, `{"items":{}}`)
	f.Fuzz(func(t *testing.T, order, refund, cart string) {
		for _, text := range []string{order, refund, cart} {
			var object map[string]json.RawMessage
			if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &object) != nil || object == nil {
				return // the reader of events refuses it
			}
		}
		r := newRecorder(t, DefaultSettings())
		first := ""
		for round := range 2 {
			r.events(orderEvent(orders.EventRefunded, "b@x.io", refund))
			r.events(orderEvent(orders.EventPlaced, "a@x.io", order), orderEvent(orders.EventCart, "a@x.io", cart))
			o, ok := r.view().Profiles().ResolveText(r.idOf("a@x.io"))
			if !ok {
				t.Fatal("the profile is gone")
			}
			own, all := r.view().Orders().Summary(o).Totals, r.view().Orders().Totals()
			if len(own) > 1 || len(own) != len(all) {
				t.Fatalf("the profile has %v, the account %v", own, all)
			}
			for i, x := range own {
				if x.Figures != all[i].Figures || x.Currency != all[i].Currency {
					t.Fatalf("the profile has %v, the account %v", own, all)
				}
				if x.Orders != 1 || x.Revenue() < 0 || x.Revenue() > x.Total {
					t.Fatalf("round %d: %+v", round, x)
				}
				if id := fmt.Sprint(x.Orders, x.Total, x.Currency); first == "" {
					first = id
				} else if id != first {
					t.Fatalf("%s, then %s", first, id)
				}
			}
		}
	})
}
