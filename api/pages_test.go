package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
)

// TestQ1PagesAreBoundedInBytes: however large the records, a page of the console is
// not much more than 4 MiB, and the cursor leads through all of them; an export has
// them all.
func TestQ1PagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	store, err := capture.Open(capture.Options{Dir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { ok(t, store.Close()) })
	s := newService(t, &memHistory{}, func(o *Options) { o.Captured.Messages = store })
	command := func(name string, args any) []byte {
		t.Helper()
		b, err := s.node.Command(t.Context(), s.account(), name, args)
		ok(t, err)
		return b
	}
	body := strings.Repeat("x", 1_000_000)
	for i := range 6 {
		command(campaigns.CommandSave, campaigns.Campaign{Name: fmt.Sprint(i), Channel: 1, Message: campaigns.Message{Body: body}})
		command(campaigns.CommandTemplateSave, campaigns.Template{Name: fmt.Sprint(i), Source: campaigns.TemplateList, HTML: body})
	}
	for i := range 30 {
		_, err := store.Add(capture.Message{ID: fmt.Sprint(i), Channel: "sms", To: "1", Body: body[:250_000], SendID: compose.SendText(s.account(), messages.ID{byte(i)})})
		ok(t, err)
	}
	large := strings.Repeat("y", 60_000)
	for i := range 100 {
		s.event(fmt.Sprintf(`{"event_type":"large","user":{"external_id":"one"},"properties":{"i":%d,"a":%q}}`, i, large))
		s.event(fmt.Sprintf(`{"event_type":"large","user":{"external_id":"p%d","attributes":{"a":%q}}}`, i, large))
	}
	var found struct {
		ID string `json:"profile_id"`
	}
	s.want("GET", "/profiles?external_id=one", "", &found)
	// Lists of campaigns and templates are without their texts.
	for path, want := range map[string]struct{ records, pages int }{"/campaigns": {6, 1}, "/templates": {6, 1}, "/outbox": {30, 2}, "/profiles/" + found.ID + "/events": {100, 2}} {
		limit := "1000"
		if path == "/outbox" {
			limit = "500"
		}
		n, pages := 0, 0
		for cursor := ""; ; {
			res, b := s.send("GET", Prefix+path+"?limit="+limit+"&cursor="+cursor, "", "Authorization", "Bearer "+s.token)
			if res.StatusCode != 200 || len(b) > 9<<19 {
				t.Fatalf("%s: %d, %d bytes", path, res.StatusCode, len(b))
			}
			var a struct {
				Data json.RawMessage
				Next string
			}
			var list []json.RawMessage
			ok(t, json.Unmarshal(b, &a))
			if json.Unmarshal(a.Data, &list) != nil {
				var d struct {
					Events []json.RawMessage
					Next   *string
				}
				ok(t, json.Unmarshal(a.Data, &d))
				if list = d.Events; d.Next != nil {
					a.Next = *d.Next
				}
			}
			n += len(list)
			pages++
			if cursor = a.Next; cursor == "" {
				break
			}
		}
		if n != want.records || pages != want.pages {
			t.Errorf("%s: %d records on %d pages", path, n, pages)
		}
	}
	res, b := s.send("GET", Prefix+"/export/profiles", "", "Authorization", "Bearer "+s.token)
	if lines := strings.Count(string(b), "\n"); res.StatusCode != 200 || lines != 101 {
		t.Errorf("an export of %d lines", lines)
	}
}
