package sdks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/foreign"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestSamplesOfSendingEvents runs the programs of docs/sending-events.md that use an SDK of
// others on servers, with the address and key of a source in them.
func TestSamplesOfSendingEvents(t *testing.T) {
	testlevel.SkipQuick(t, "runs SDKs")
	page, err := os.ReadFile("../../docs/sending-events.md")
	ok(t, err)
	_, section, _ := strings.Cut(string(page), "\n## SDKs of Segment, RudderStack and PostHog\n")
	samples := regexp.MustCompile("(?ms)^### ([^\n]*)\n\n```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	if len(samples) != 7 {
		t.Fatalf("the page has %d programs with an SDK", len(samples))
	}
	server := serverprocess.Start(t)
	origin := server.Origin
	b, err := os.ReadFile(server.Credentials())
	ok(t, err)
	var credentials struct {
		APIKey string `json:"api_key"`
	}
	ok(t, json.Unmarshal(b, &credentials))
	for i, x := range samples {
		name, language, text := x[1], x[2], x[3]
		if name == "Browsers" {
			continue // it runs in a page
		}
		t.Run(name, func(t *testing.T) {
			s := &service{t, origin, credentials.APIKey}
			user := fmt.Sprintf("user-%d", 42+i)
			text = strings.NewReplacer("wk_YOUR_KEY", s.source("server"), "https://muster.example.com", origin, "user-42", user, "ann@", user+"@").Replace(text)
			var out string
			var err error
			switch language {
			case "js":
				project := node(t)
				ok(t, os.WriteFile(filepath.Join(project, "sample.mjs"), []byte(text), 0o600))
				out, err = foreign.Output(project, "node", "sample.mjs")
			case "python":
				file := filepath.Join(t.TempDir(), "sample.py")
				ok(t, os.WriteFile(file, []byte(text), 0o600))
				out, err = foreign.Output(".", python(t), file)
			case "go":
				project := t.TempDir()
				for _, name := range []string{"go.mod", "go.sum"} {
					ok(t, foreign.CopyFile(filepath.Join("testdata/go", name), filepath.Join(project, name)))
				}
				ok(t, os.WriteFile(filepath.Join(project, "main.go"), []byte(text), 0o600))
				out, err = foreign.Output(project, "go", "run", ".")
			default:
				t.Fatalf("no test knows how to run a program in %s", language)
			}
			if err != nil || strings.TrimSpace(out) != "" {
				t.Fatalf("the program printed %q, %v", out, err)
			}
			var v visitor
			s.call("GET", "/profiles?external_id="+user, "", &v)
			if v.FirstName != "Ann" || len(v.Identities["email"]) != 1 {
				t.Errorf("the profile is %+v", v)
			}
			var list struct{ Events []event }
			s.call("GET", "/profiles/"+v.ID+"/events", "", &list)
			n := 0
			for _, e := range list.Events {
				if e.Type == "product_viewed" && e.Properties["sku"] == "sku-7" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("the events are %+v", list.Events)
			}
		})
	}
}
