package shop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"
)

var until = time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)

type wire struct {
	EventType string         `json:"event_type"`
	User      map[string]any `json:"user"`
	Raw       map[string]any `json:"properties"`
	Timestamp time.Time      `json:"timestamp"`
}

func generate(t *testing.T, o Options) ([]wire, Totals, []byte) {
	t.Helper()
	var out bytes.Buffer
	totals, err := Generate(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	var events []wire
	for line := range bytes.Lines(out.Bytes()) {
		var e wire
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events, totals, out.Bytes()
}

func TestHistoryIsBelievable(t *testing.T) {
	o := Options{Customers: 400, Orders: 900, Days: 365, Seed: 5, Until: until}
	events, totals, _ := generate(t, o)
	var last time.Time
	byType, byHour, orders := map[string]int{}, map[int]int{}, map[string]string{}
	value := new(big.Rat)
	for i, e := range events {
		if e.Timestamp.Before(last) || e.Timestamp.Before(until.AddDate(0, 0, -365)) || !e.Timestamp.Before(until) {
			t.Fatalf("event %d at %v, after %v", i, e.Timestamp, last)
		}
		last = e.Timestamp
		byType[e.EventType]++
		byHour[e.Timestamp.Hour()]++
		if e.EventType != purchased && e.EventType != returned {
			continue
		}
		order := e.Raw["order_id"].(string)
		exact := func(name string) *big.Rat {
			r, ok := new(big.Rat).SetString(e.Raw[name].(json.Number).String())
			if !ok {
				t.Fatalf("event %d: %s is %v", i, name, e.Raw[name])
			}
			return r
		}
		if exact("value").Cmp(new(big.Rat).Mul(exact("quantity"), exact("unit_price"))) != 0 || exact("value").Sign() <= 0 {
			t.Fatalf("event %d: value %v of %v at %v", i, e.Raw["value"], e.Raw["quantity"], e.Raw["unit_price"])
		}
		bought := fmt.Sprint(order, e.Raw["product_id"], e.Raw["quantity"])
		if e.EventType == purchased {
			orders[bought] = order
			value.Add(value, exact("value"))
		} else if orders[bought] == "" {
			t.Fatalf("event %d: %s was returned before it was bought", i, bought)
		}
	}
	if totals.Events != len(events) || !maps.Equal(totals.ByType, byType) {
		t.Errorf("totals %+v, lines %d %v", totals, len(events), byType)
	}
	if value.Cmp(big.NewRat(totals.PurchasedCents, 100)) != 0 {
		t.Errorf("purchases are worth %s, totals say %d cents", value.FloatString(2), totals.PurchasedCents)
	}
	for _, kind := range []string{signedUp, confirmed, subscribed, clicked, pageViewed, productViewed, addedToCart, purchased, returned} {
		if byType[kind] == 0 {
			t.Errorf("no %s at all", kind)
		}
	}
	if byHour[19] < 4*byHour[3] {
		t.Errorf("nights as busy as evenings: %v", byHour)
	}
}

// Stitching by hand: identifiers that ever stand in one event are one person.
func TestR2TotalsCountProfiles(t *testing.T) {
	events, totals, _ := generate(t, Options{Customers: 300, Orders: 500, Days: 120, Seed: 8, Until: until})
	parent := map[string]string{}
	var find func(string) string
	find = func(id string) string {
		if parent[id] == "" || parent[id] == id {
			parent[id] = id
			return id
		}
		return find(parent[id])
	}
	alone := map[string]bool{}
	stitched := 0
	for _, e := range events {
		var ids []string
		for _, kind := range []string{"email", "external_id", "phone"} {
			if v, ok := e.User[kind].(string); ok {
				ids = append(ids, kind+" "+v)
			}
		}
		if len(ids) == 0 {
			t.Fatalf("event without an identifier: %+v", e)
		}
		if len(ids) == 1 {
			alone[ids[0]] = true
		}
		for _, id := range ids[1:] {
			a, b := find(ids[0]), find(id)
			if a != b {
				if alone[ids[0]] && alone[id] {
					stitched++
				}
				parent[a] = b
			}
		}
		find(ids[0])
	}
	roots := map[string]bool{}
	for id := range maps.Clone(parent) {
		roots[find(id)] = true
	}
	if len(roots) != totals.Profiles {
		t.Errorf("%d profiles by hand, totals say %d", len(roots), totals.Profiles)
	}
	if stitched < 10 {
		t.Errorf("%d pairs of profiles had to be joined, want more to stitch", stitched)
	}
}

func TestSameOptionsSameBytes(t *testing.T) {
	o := Options{Customers: 50, Orders: 80, Days: 60, Seed: 3, Until: until}
	_, _, a := generate(t, o)
	_, _, b := generate(t, o)
	o.Seed = 4
	_, _, c := generate(t, o)
	if !bytes.Equal(a, b) {
		t.Error("the same options gave different histories")
	}
	if bytes.Equal(a, c) {
		t.Error("another seed gave the same history")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Customers: 1, Orders: 1, Days: 1, Until: until}
	for name, spoil := range map[string]func(*Options){
		"customers": func(o *Options) { o.Customers = 0 },
		"orders":    func(o *Options) { o.Orders = -1 },
		"days":      func(o *Options) { o.Days = 0 },
		"until":     func(o *Options) { o.Until = time.Time{} },
	} {
		o := good
		spoil(&o)
		if _, err := Generate(&bytes.Buffer{}, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Generate(&bytes.Buffer{}, good); err != nil {
		t.Errorf("the smallest history: %v", err)
	}
}
