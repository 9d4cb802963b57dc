package api

import (
	"fmt"
	"reflect"
	"testing"
)

type eventType struct {
	FirstSeen     *string `json:"first_seen"`
	LastSeen      *string `json:"last_seen"`
	Count         uint64
	PropertyCount int `json:"property_count"`
}

type catalogType struct {
	Type  string
	Share float64
}

type catalogValue struct {
	Value, Type string
	Share       float64
}

type catalogField struct {
	Path         string
	Share        float64
	FirstSeen    string `json:"first_seen"`
	LastSeen     string `json:"last_seen"`
	Types        []catalogType
	ElementTypes []string `json:"element_types"`
	Values       []catalogValue
	MoreValues   bool `json:"more_values"`
}

// TestCatalogOfProperties: an event type answers its properties with types, shares and
// values, and the attributes of profiles are a call of their own.
func TestCatalogOfProperties(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	for i := range 10 {
		s.event(fmt.Sprintf(`{"event_type":"bought","user":{"email":"p%d@x.io","attributes":{"plan":"pro","tags":["a","b"]},"geo":{"country":"DE"}},"properties":{"value":%d,"item":{"sku":"s-%d"},"note":null}}`, i, i%2, i%3))
	}
	s.event(`{"event_type":"bought","user":{"email":"p1@x.io"},"properties":{"value":"free"}}`)
	var one struct {
		eventType
		LookedAt   uint64 `json:"looked_at"`
		Properties []catalogField
		More       uint64
	}
	s.want("GET", "/catalog/bought", "", &one)
	if one.Count != 11 || one.LookedAt != 11 || one.PropertyCount != 3 || len(one.Properties) != 3 || one.More != 0 || one.LastSeen == nil || *one.LastSeen != *one.FirstSeen {
		t.Fatalf("have %+v", one)
	}
	value := one.Properties[2]
	want := catalogField{"value", 1, *one.FirstSeen, *one.FirstSeen, []catalogType{{"number", 10. / 11}, {"text", 1. / 11}}, []string{},
		[]catalogValue{{"0", "number", 5. / 11}, {"1", "number", 5. / 11}, {"free", "text", 1. / 11}}, false}
	if !reflect.DeepEqual(value, want) {
		t.Errorf("have %+v", value)
	}
	if one.Properties[0].Path != "item" || one.Properties[1].Path != "item.sku" || one.Properties[1].Share != 10./11 || len(one.Properties[1].Values) != 3 {
		t.Errorf("have %+v", one.Properties)
	}
	var list []eventType
	s.want("GET", "/catalog", "", &list)
	if len(list) != 1 || list[0].PropertyCount != 3 {
		t.Errorf("have %+v", list)
	}
	var attributes struct {
		LookedAt   uint64 `json:"looked_at"`
		Attributes []catalogField
	}
	s.want("GET", "/attributes", "", &attributes)
	h.mu.Lock()
	if h.expected != 1 {
		t.Errorf("history expected questions %d times", h.expected)
	}
	h.mu.Unlock()
	if a := attributes.Attributes; attributes.LookedAt != 10 || len(a) != 3 || a[0].Path != "attributes.plan" || a[1].Path != "attributes.tags" || a[2].Path != "geo.country" ||
		!reflect.DeepEqual(a[1].ElementTypes, []string{"text"}) || len(a[1].Values) != 2 || a[1].Types[0].Type != "list" {
		t.Errorf("have %+v", attributes)
	}
	if status, _ := s.get("/catalog/none"); status != 404 {
		t.Errorf("no such type: %d", status)
	}
	s.want("POST", "/catalog", `{"name":"Item kept"}`, nil)
	s.want("GET", "/catalog/item_kept", "", &one)
	if one.Properties == nil || len(one.Properties) != 0 || one.Count != 0 {
		t.Errorf("a type without events: %+v", one)
	}
}
