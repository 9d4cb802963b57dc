package card

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/must"
)

func TestCheck(t *testing.T) {
	for field, list := range map[string][]Card{
		"":          {{Title: "t"}, {Title: "t", Body: "a\nb", Link: "https://x.io/a", Options: Options{Display: Modal, Image: "https://x.io/i.png", Priority: MaxPriority, TTLHours: MaxTTLHours}}, {Title: "t", Link: "myapp://sale"}, {Title: "t", Link: "http://localhost:8080/"}},
		"title":     {{}, {Title: " "}, {Title: "a\nb"}, {Title: "\xff"}, {Title: strings.Repeat("x", MaxTitleBytes+1)}},
		"body":      {{Title: "t", Body: "\x00"}, {Title: "t", Body: strings.Repeat("x", MaxBodyBytes+1)}},
		"link":      {{Title: "t", Link: "javascript:alert(1)"}, {Title: "t", Link: "javascript://x.io/%0aalert(1)"}, {Title: "t", Link: "data://x"}, {Title: "t", Link: "http://x.io"}, {Title: "t", Link: "https://u:p@x.io"}, {Title: "t", Link: "/a"}, {Title: "t", Link: "https://x.io/ a"}},
		"image":     {{Title: "t", Options: Options{Image: "http://localhost/i.png"}}, {Title: "t", Options: Options{Image: "data:image/png;base64,AA"}}},
		"display":   {{Title: "t", Options: Options{Display: "popup"}}},
		"priority":  {{Title: "t", Options: Options{Priority: -1}}, {Title: "t", Options: Options{Priority: MaxPriority + 1}}},
		"ttl_hours": {{Title: "t", Options: Options{TTLHours: -1}}, {Title: "t", Options: Options{TTLHours: MaxTTLHours + 1}}},
	} {
		for _, c := range list {
			got := ""
			if f := c.Check(); f != nil {
				got = f.Field
			}
			if got != field {
				t.Errorf("%+v: the fault is in %q, want %q", c, got, field)
			}
		}
	}
}

// FuzzCheck: what is taken as a message can be stored and read again, and its links are not
// such as run a script on the page.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"title":"t","body":"a\nb","link":"https://x.io/a?b=1","image":"https://x.io/i.png","display":"modal","priority":3,"ttl_hours":24}`,
		`{"title":"t","link":"myapp://sale"}`, `{"title":"t","link":"JavaScript://x"}`, `{"title":"t","link":"http://127.0.0.1/"}`, `{"title":"t","image":"data:x"}`, `{"title":"\u0000"}`, `{"ttl_hours":1e3}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c Card
		if json.Unmarshal(raw, &c) != nil || c.Check() != nil {
			return
		}
		for _, link := range []string{c.Link, c.Image} {
			scheme, _, _ := strings.Cut(link, ":")
			if link != "" && (slices.Contains([]string{"", "javascript", "data", "vbscript", "blob", "file"}, strings.ToLower(scheme)) || strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' })) {
				t.Fatalf("%q is taken as a link", link)
			}
		}
		if strings.TrimSpace(c.Title) == "" || strings.ContainsAny(c.Title, "\r\n") || !utf8.ValidString(c.Title+c.Body) || c.ExpiresMs(0) < 60*60*1000 || c.ExpiresMs(0) > MaxTTLHours*60*60*1000 {
			t.Fatalf("%+v is taken", c)
		}
		var again Card
		if err := json.Unmarshal(must.PlainJSON(c), &again); err != nil || again != c {
			t.Fatalf("%+v is read again as %+v: %v", c, again, err)
		}
	})
}
