package keyapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestQ1PagesAreBoundedInBytes: however large the records, a page is not much more
// than 4 MiB; `next` leads through all of them.
func TestQ1PagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := newService(t, func(o *Options) { o.PerMinute = 10_000 })
	key := s.newKey("contacts:read", "campaigns:read").Key
	command := func(name string, args any) {
		t.Helper()
		_, err := s.node.Command(t.Context(), s.account, name, args)
		ok(t, err)
	}
	body := strings.Repeat("x", 1_000_000)
	for i := range 11 {
		command(campaigns.CommandSave, campaigns.Campaign{Name: fmt.Sprint(i), Channel: 1, Message: campaigns.Message{Body: body}})
	}
	large := json.RawMessage(`{"a":"` + strings.Repeat("y", 60_000) + `"}`)
	for i := range 150 {
		b, err := s.node.Command(t.Context(), s.account, contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("p%d@x.io", i)})
		ok(t, err)
		var made contacts.Reply
		ok(t, json.Unmarshal(b, &made))
		command(contacts.CommandUpdate, contacts.Update{ID: made.ID, Attributes: large})
	}
	// A list of campaigns is without their bodies.
	for path, want := range map[string]struct{ records, pages int }{"/campaign": {11, 1}, "/contacts": {150, 3}} {
		n, pages := 0, 0
		for cursor := ""; ; {
			res, b := s.with(key, "GET", "/api/v1"+path+"?limit=1000&cursor="+cursor, "")
			if res.StatusCode != 200 || len(b) > 9<<19 || path == "/campaign" && len(b) > 20_000 {
				t.Fatalf("%s: %d, %d bytes", path, res.StatusCode, len(b))
			}
			var a struct {
				Data []json.RawMessage
				Next string
			}
			ok(t, json.Unmarshal([]byte(b), &a))
			n += len(a.Data)
			pages++
			if cursor = a.Next; cursor == "" {
				break
			}
		}
		if n != want.records || pages != want.pages {
			t.Errorf("%s: %d records on %d pages", path, n, pages)
		}
	}
}

// TestQ1LargeAnswersNeedRoom: an answer for which there is no memory is a 503, and
// what an answer took is given back.
func TestQ1LargeAnswersNeedRoom(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int{1_500_000: 503, 8_000_000: 200} {
		memory := ingest.NewMemory(limit)
		s := newService(t, func(o *Options) { o.PerMinute, o.Memory = 10_000, memory })
		key := s.newKey("campaigns:read", "campaigns:write", "contacts:read").Key
		b, err := s.node.Command(t.Context(), s.account, campaigns.CommandSave, campaigns.Campaign{Name: "c", Channel: 1, Message: campaigns.Message{Body: strings.Repeat("x", 1_000_000)}})
		ok(t, err)
		var made campaigns.Campaign
		ok(t, json.Unmarshal(b, &made))
		large := json.RawMessage(`{"a":"` + strings.Repeat("y", 60_000) + `"}`)
		for range 17 {
			b, err := s.node.Command(t.Context(), s.account, contacts.CommandCreate, contacts.Create{})
			ok(t, err)
			var made contacts.Reply
			ok(t, json.Unmarshal(b, &made))
			_, err = s.node.Command(t.Context(), s.account, contacts.CommandUpdate, contacts.Update{ID: made.ID, Attributes: large})
			ok(t, err)
		}
		for range 5 {
			res, b := s.with(key, "GET", "/api/v1/contacts", "")
			if res.StatusCode != want || want == 503 && (res.Header.Get("Retry-After") == "" || failureOf(t, res.StatusCode, b) == "") {
				t.Errorf("%d %.200s", res.StatusCode, b)
			}
		}
		// What has changed something is answered all the same.
		if res, b := s.with(key, "PATCH", "/api/v1/campaign/"+made.ID, `{"name":"d"}`); res.StatusCode != 200 || len(b) < 1_000_000 {
			t.Errorf("%d %.200s", res.StatusCode, b)
		}
		eventually.Succeeds(t, func() error {
			if n := memory.Used(); n != 0 {
				return fmt.Errorf("%d bytes are still held", n)
			}
			return nil
		})
	}
}
