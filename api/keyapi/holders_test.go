package keyapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// TestContactsByASharedNumber: contacts are listed by a number that several of them
// show, all of them and page by page, and found by a key from its beginning.
func TestContactsByASharedNumber(t *testing.T) {
	t.Parallel()
	k := keyCaller{newServiceWith(t, &rowHistory{}, nil)}
	var want []string
	for i := range 5 {
		var c struct {
			ID string `json:"_id"`
		}
		k.must("POST", "/contacts", fmt.Sprintf(`{"email":"c%d@x.io","phone":"+49 30 100","external_id":"Desk","first_name":"Col%d"}`, i, i), &c)
		want = append(want, c.ID)
	}
	k.must("POST", "/contacts", `{"email":"other@x.io","phone":"4930100","external_id":"desk"}`, nil)
	for _, query := range []string{"phone=%2B4930-100", "external_id=Desk"} {
		for _, limit := range []int{2, 5, 100} {
			var got []string
			for cursor := ""; ; {
				var page struct {
					Data []struct {
						ID string `json:"_id"`
					}
					Next *string
				}
				_, b := k.with(k.creds.APIKey, "GET", fmt.Sprintf("/api/v1/contacts?%s&limit=%d&cursor=%s", query, limit, cursor), "")
				ok(t, json.Unmarshal([]byte(b), &page))
				for _, c := range page.Data {
					got = append(got, c.ID)
				}
				if page.Next == nil || *page.Next == "" {
					break
				}
				cursor = *page.Next
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d a page: %q, want %q", query, limit, got, want)
			}
		}
	}
	var rows []struct {
		ProfileID string `json:"profile_id"`
	}
	if k.must("GET", "/profiles/search?q=desk&sort=oldest", "", &rows); len(rows) != 6 || rows[0].ProfileID != want[0] {
		t.Errorf("found: %+v", rows)
	}
	k.refused("GET", "/profiles/search?sort=match", "", "sort by match needs a q; leave sort out, or use newest, oldest or last_event")
}
