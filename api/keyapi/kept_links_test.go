package keyapi

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/record"
)

var trackedLinks = regexp.MustCompile(`http://127\.0\.0\.1:8080(/t/[A-Za-z0-9_-]+)`)

// TestDeliveredLinksLeadWhereTheyLed: after an A/B test, an edit and another send the links of
// messages that were delivered before lead where they led, and each link's clicks are its own.
func TestDeliveredLinksLeadWhereTheyLed(t *testing.T) {
	t.Parallel()
	for _, channel := range []string{"email", "sms"} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			x := newSending(t)
			kind, link := `"type":1,"subject":"s"`, `<a href=\"https://shop.example/%s\">go</a> `
			if channel == "sms" {
				kind, link = `"type":2,"track_links":true`, `https://shop.example/%s `
			}
			body := func(pages ...string) string {
				out := ""
				for _, p := range pages {
					out += fmt.Sprintf(link, p)
				}
				return out
			}
			people := 0
			join := func(n int) {
				for range n {
					people++
					x.contact(fmt.Sprintf(`{"email":"p%d@x.io","phone":"+4915100000%03d"}`, people, people))
				}
			}
			// Where each link led when its message came: by its path.
			led, clicks := map[string]string{}, map[string]uint64{}
			seen := 0
			follow := func(path string) string {
				x.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				res, _ := x.send("GET", path, "", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
				if res.StatusCode == 302 {
					clicks[res.Header.Get("Location")]++
				}
				return res.Header.Get("Location")
			}
			arrive := func() {
				t.Helper()
				list := x.captured(channel)
				if len(list) == seen {
					t.Fatal("nothing was sent")
				}
				for _, m := range list[:len(list)-seen] { // the newest first
					for _, found := range trackedLinks.FindAllStringSubmatch(m.HTML+m.Text+m.Body, -1) {
						if at := follow(found[1]); at != "" { // not the picture, not the unsubscribe link
							led[found[1]] = at
						}
					}
				}
				seen = len(list)
			}
			var c record.Campaign
			check := func(what string) {
				t.Helper()
				for path, want := range led {
					if at := follow(path); at != want {
						t.Errorf("%s: a link that led to %s leads to %q", what, want, at)
					}
				}
				var stats struct{ Links []record.LinkClicks }
				x.call("success", "GET", "/campaign/"+c.ID+"/stats", "", &stats)
				have := map[string]uint64{}
				for _, l := range stats.Links {
					if l.Clicks > 0 {
						have[l.URL] = l.Clicks
					}
				}
				if !maps.Equal(have, clicks) {
					t.Errorf("%s: clicks %v, want %v", what, have, clicks)
				}
			}
			x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"date":"2026-01-01",`+kind+`,"body":"`+body("base")+`"}`, &c)
			join(6)
			x.call("success", "POST", "/campaign/"+c.ID+"/ab-test/start", `{"all_contacts":true,"test_percent":100,"variants":[{"body":"`+body("a", "a2")+`"},{"body":"`+body("b", "a", "b2")+`"}]}`, nil)
			x.eventually("the test is sent", func() bool { return len(x.captured(channel)) == 6 })
			arrive()
			check("after the test")
			x.eventually("the run is over", func() bool {
				var stats struct{ Status string }
				x.call("success", "GET", "/campaign/"+c.ID+"/stats", "", &stats)
				x.clock.Advance(5 * time.Hour)
				return stats.Status == "sent"
			})
			join(1)
			x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
			arrive()
			check("after another send")
			x.call("success", "PATCH", "/campaign/"+c.ID, `{"body":"`+body("new", "a", "base")+`"}`, nil)
			join(1)
			x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
			arrive()
			check("after an edit")
			x.call("success", "PATCH", "/campaign/"+c.ID, `{"body":"no link"}`, nil)
			join(1)
			x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
			check("after a text without links")
			if got := strings.Join(slices.Sorted(maps.Values(led)), " "); len(led) < 15 || !strings.Contains(got, "/new") || !strings.Contains(got, "/b2") {
				t.Errorf("links led to %s", got)
			}
		})
	}
}
