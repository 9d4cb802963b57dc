package resolver

import (
	"testing"

	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
)

// TestNobodySavesOverAnotherVersion: a save that names the version it changed does
// not overwrite one that was saved meanwhile; a save without a version does.
func TestNobodySavesOverAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	all := `{"kind":"attribute","field":"email","op":"exists"}`
	bought := `{"kind":"activity","event":"bought"}`
	segment := answer[struct{ ID string }](t, r.must(CommandSegmentCreate, SegmentSave{Name: "a", Definition: []byte(all)})).ID
	flow := answer[automation.Flow](t, r.must(automation.CommandCreate, automation.Save{Definition: []byte(`{"name":"a"}`)})).ID
	template := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.TemplateSave{Template: campaigns.Template{Name: "a", Source: campaigns.TemplateList, HTML: "<p>one</p>"}})).ID
	version := func(kind string) string {
		v := r.view()
		switch kind {
		case "segment":
			s, _ := v.Segments().Get(segment)
			return s.Version()
		case "flow":
			f, _ := v.Flows().Find(flow)
			return f.Version()
		}
		x, _, err := v.Campaigns().WholeTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		return x.Version()
	}
	save := func(kind, content, seen string) *Refusal {
		switch kind {
		case "segment":
			return r.command(CommandSegmentUpdate, SegmentSave{ID: segment, Name: "a", Definition: []byte(map[string]string{"one": all, "two": bought}[content]), IfVersion: seen}).Refusal
		case "flow":
			return r.command(automation.CommandUpdate, automation.Save{ID: flow, Definition: []byte(`{"name":"` + content + `"}`), IfVersion: seen}).Refusal
		}
		return r.command(campaigns.CommandTemplateSave, campaigns.TemplateSave{Template: campaigns.Template{ID: template, Name: "a", Source: campaigns.TemplateList, HTML: "<p>" + content + "</p>"}, IfVersion: seen}).Refusal
	}
	for _, kind := range []string{"segment", "flow", "template"} {
		if x := save(kind, "one", ""); x != nil {
			t.Fatalf("%s: %v", kind, x)
		}
		seen := version(kind)
		if x := save(kind, "two", seen); x != nil {
			t.Fatalf("%s: the version that was seen: %v", kind, x)
		}
		second := version(kind)
		if second == seen {
			t.Fatalf("%s: two contents are one version %s", kind, seen)
		}
		if x := save(kind, "one", seen); x == nil || x.Code != "conflict" || x.Field != "if_version" {
			t.Errorf("%s: over another version: %v", kind, x)
		}
		if version(kind) != second {
			t.Errorf("%s: what was refused has changed it", kind)
		}
		if x := save(kind, "two", second); x != nil || version(kind) != second {
			t.Errorf("%s: the same content: %v", kind, x)
		}
		if x := save(kind, "one", ""); x != nil || version(kind) != seen {
			t.Errorf("%s: over whatever there is: %v", kind, x)
		}
	}
}
