package paging

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestQ1RoomIsOfEncodedBytes: what a page takes for its records' length is no less
// than nearly their JSON, whatever is in them, and not much more.
func TestQ1RoomIsOfEncodedBytes(t *testing.T) {
	type inner struct {
		Raw  json.RawMessage `json:"raw"`
		Text *string         `json:"text"`
	}
	for _, text := range []string{"", strings.Repeat("x", 5000), strings.Repeat("\x01", 5000), strings.Repeat(`"\`, 2000), strings.Repeat("é", 3000)} {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		v := struct {
			Name  string         `json:"name"`
			List  []string       `json:"list"`
			By    map[string]int `json:"by"`
			Inner inner          `json:"inner"`
			Any   any            `json:"any"`
		}{text, []string{text, text}, map[string]int{text: 1}, inner{raw, &text}, text}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var r Room
		if !r.Take(&v) || r.Bytes < len(b) || r.Bytes > len(b)+200 {
			t.Errorf("%.10q: %d bytes for a JSON of %d", text, r.Bytes, len(b))
		}
	}
}

// TestQ1ShowByAge: pages that end early make up the list; a record larger than a
// page has one of its own.
func TestQ1ShowByAge(t *testing.T) {
	var list []Age
	sizes := []int{1, 3 << 20, 1, 9 << 20, 2 << 20, 2<<20 - 100, 1, 1, 4 << 20, 1}
	for i := range sizes {
		list = append(list, Age{int64(i), strconv.Itoa(i)})
	}
	for _, limit := range []int{1, 2, 3, 100} {
		n := 0
		for cursor := ""; ; {
			after, err := DecodeAge([]byte(cursor))
			if err != nil {
				t.Fatal(err)
			}
			out, next, room := ShowByAge(list, after, limit, false, func(a *Age) Age { return *a }, func(a *Age) string { return strings.Repeat("x", sizes[a.CreatedMs]) })
			if len(out) == 0 || len(out) > limit || room.Bytes > MaxBytes && len(out) > 1 {
				t.Fatalf("limit %d: a page of %d records, %d bytes", limit, len(out), room.Bytes)
			}
			for _, s := range out {
				if len(s) != sizes[n] {
					t.Fatalf("limit %d: record %d has %d bytes", limit, n, len(s))
				}
				n++
			}
			if cursor = next; next == "" {
				break
			}
		}
		if n != len(sizes) {
			t.Errorf("limit %d: %d records", limit, n)
		}
	}
	if out, next, _ := ShowByAge(list[:0], nil, 5, false, func(a *Age) Age { return *a }, func(a *Age) Age { return *a }); out == nil || len(out) != 0 || next != "" {
		t.Errorf("of an empty list: %v, %q", out, next)
	}
}
