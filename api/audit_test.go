package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

func (s *service) audit(query string) (list []accounts.Change, next *string) {
	s.t.Helper()
	status, a := s.do("GET", "/audit"+query, "")
	if a.into(s.t, &list); status != http.StatusOK {
		s.t.Fatalf("%d %s", status, a.Message)
	}
	return list, a.Next
}

// TestAuditLog: the log has who changed what, in order, and no values.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	begin, _ := s.audit("?limit=1")
	s.newUser("ann@x.io", "segments:read", "segments:write", "templates:write", "templates:read", "settings:read", "settings:write")
	ann := s.as("ann@x.io", "long enough password")
	seg := ann.segment("One", `{"kind":"activity","event":"a"}`)
	put := func(name, definition string) {
		t.Helper()
		ann.want("PUT", "/segments/"+seg.ID, fmt.Sprintf(`{"name":%q,"definition":%s}`, name, definition), nil)
	}
	put("Two", `{"kind":"activity","event":"a"}`)
	put("Two", `{"kind":"activity","event":"b"}`)
	if status, _ := ann.do("PUT", "/segments/"+seg.ID, `{"name":"","definition":{"kind":"activity","event":"b"}}`); status != 400 {
		t.Fatalf("%d", status)
	}
	var settings map[string]any
	ann.want("GET", "/settings", "", &settings)
	settings["double_opt_in"] = true
	b, err := json.Marshal(settings)
	ok(t, err)
	ann.want("PUT", "/settings", string(b), nil)
	var tpl struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/templates", `{"name":"T","subject":"s","html":"<p>x"}`, &tpl)
	s.want("PUT", "/templates/"+tpl.ID, `{"name":"T","subject":"s","html":"<p>y"}`, nil)
	s.want("POST", "/webhooks", `{"url":"https://hooks.example.com/","events":["*"]}`, nil)
	ann.want("DELETE", "/segments/"+seg.ID, "", nil)
	want := []string{
		"user.create [email name password_hash permissions] admin", "segment.create [definition name] ann One", "segment.update [name] ann Two", "segment.update [definition] ann Two",
		"settings.update [double_opt_in] ann", "template.create", "template.update", "webhook.create", "segment.delete [] ann Two",
	}
	list, _ := s.audit("?limit=100")
	list = list[:len(list)-len(begin)]
	if len(list) != len(want) {
		t.Fatalf("%d changes, expected %d: %+v", len(list), len(want), list)
	}
	for i, w := range want {
		x := list[len(list)-1-i]
		parts := strings.SplitN(w, " ", 2)
		if x.Action != parts[0] || x.By.Kind != audit.ByUser || x.By.ID == "" {
			t.Errorf("change %d is %+v, expected %s", i, x, w)
		}
		if i > 0 && i < 5 {
			if got := fmt.Sprintf("%s %v ann %s", x.Action, x.Fields, x.Name); strings.TrimSpace(got) != w || x.By.ID != list[0].By.ID {
				t.Errorf("change %d is %q, expected %q", i, got, w)
			}
		}
	}
	if one, _ := s.audit("?target_id=" + tpl.ID); len(one) != 2 || one[0].TargetID != tpl.ID {
		t.Errorf("%+v", one)
	}
	first, next := s.audit("?kind=segment&limit=3")
	rest, end := s.audit("?kind=segment&limit=3&cursor=" + *next)
	if len(first) != 3 || len(rest) != 1 || end != nil || rest[0].Action != "segment.create" {
		t.Errorf("%+v, then %+v", first, rest)
	}
	if status, a := s.do("GET", "/audit?kind=profile", ""); status != 400 || a.field() != "kind" {
		t.Errorf("%d %s", status, a.Message)
	}
	// Nothing secret is in the log.
	_ = s.node.Read(t.Context(), s.account(), func(v *resolver.View) error {
		changes, err := v.Audit().Changes("", "", 0, 1000)
		ok(t, err)
		if b, _ := json.Marshal(changes); bytes.Contains(b, []byte("whsec_")) || bytes.Contains(b, []byte("argon")) || bytes.Contains(b, []byte("example.com")) {
			t.Errorf("%s", b)
		}
		return nil
	})
}

// TestSegmentVersions: each definition that a segment had, by whom it was made.
func TestSegmentVersions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	seg := s.segment("One", `{"kind":"activity","event":"a"}`)
	s.want("PUT", "/segments/"+seg.ID, `{"name":"Two","definition":{"kind":"activity","event":"b"}}`, nil)
	var list []struct {
		Name       string
		Definition json.RawMessage
		By         struct{ Name string }
	}
	s.want("GET", "/segments/"+seg.ID+"/versions", "", &list)
	if len(list) != 2 || list[1].Name != "One" || !strings.Contains(string(list[1].Definition), `"a"`) || !strings.Contains(string(list[0].Definition), `"b"`) || list[0].By.Name == "" {
		t.Fatalf("%+v", list)
	}
	if status, _ := s.do("GET", "/segments/x/versions", ""); status != 404 {
		t.Errorf("%d", status)
	}
}

// TestVersions: what flows, templates and settings were, and by whom, page by page.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var flow, tpl struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"one"}`, &flow)
	s.want("PUT", "/flows/"+flow.ID, `{"name":"two","steps":[{"id":"x","type":"exit"}]}`, nil)
	s.want("POST", "/templates", `{"name":"T","subject":"s","html":"<p>x"}`, &tpl)
	s.want("PUT", "/templates/"+tpl.ID, `{"name":"T","subject":"s","html":"<p>y"}`, nil)
	var settings map[string]any
	s.want("GET", "/settings", "", &settings)
	settings["double_opt_in"] = true
	b, err := json.Marshal(settings)
	ok(t, err)
	s.want("PUT", "/settings", string(b), nil)
	for path, want := range map[string][]string{"/flows/" + flow.ID: {"name:two", "name:one"}, "/templates/" + tpl.ID: {"<p>y", "<p>x"}, "/settings": {"double_opt_in:true"}} {
		var got []handler.Version
		for cursor := ""; ; {
			var list []handler.Version
			a := s.want("GET", path+"/versions?limit=1"+cursor, "", &list)
			got = append(got, list...)
			if a.Next == nil {
				break
			}
			cursor = "&cursor=" + *a.Next
		}
		if len(got) != len(want) {
			t.Errorf("%s: %+v", path, got)
			continue
		}
		for i, w := range want {
			var content map[string]any
			ok(t, json.Unmarshal(got[i].Content, &content))
			if !strings.Contains(fmt.Sprint(content), w) || got[i].By.Name == "" || got[i].At == "" {
				t.Errorf("%s: version %d is %+v, expected %s", path, i, got[i], w)
			}
		}
	}
	for _, path := range []string{"/flows/x", "/templates/x"} {
		if status, _ := s.get(path + "/versions"); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestSettingsVersionsAreWhole: a version of the settings has every setting, also one that
// is off.
func TestSettingsVersionsAreWhole(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var now map[string]any
	s.want("GET", "/settings", "", &now)
	body, err := json.Marshal(now)
	ok(t, err)
	s.want("PUT", "/settings", string(body), nil)
	now["ignore_unknown_event_fields"] = true
	if body, err = json.Marshal(now); err == nil {
		s.want("PUT", "/settings", string(body), nil)
	}
	ok(t, err)
	now["ignore_unknown_event_fields"] = false
	if body, err = json.Marshal(now); err == nil {
		s.want("PUT", "/settings", string(body), nil)
	}
	ok(t, err)
	var list []struct{ Content map[string]any }
	s.want("GET", "/settings/versions", "", &list)
	if len(list) < 2 || list[0].Content["ignore_unknown_event_fields"] != false || list[1].Content["ignore_unknown_event_fields"] != true || len(list[0].Content) != len(now) {
		t.Errorf("%+v", list)
	}
}
