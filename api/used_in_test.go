package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver"
)

// TestUsedIn: what a refused deletion names is what used-in answers, with kinds and ids.
func TestUsedIn(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var l, tpl, flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/lists", `{"name":"L","description":""}`, &l)
	s.want("POST", "/templates", `{"name":"T","subject":"s","html":"<p>{{confirm_url}}"}`, &tpl)
	base := s.segment("Base", fmt.Sprintf(`{"kind":"list","list_id":%q}`, l.ID))
	user := s.segment("User", fmt.Sprintf(`{"kind":"segment","segment_id":%q}`, base.ID))
	s.want("POST", "/flows", fmt.Sprintf(`{"name":"F","trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"mail","type":"email","template_id":%q,"sender":"a@mail.example.com"}]}`, base.ID, tpl.ID), &flow)
	settings := resolver.DefaultSettings()
	settings.ConfirmTemplateID = tpl.ID
	_, err := s.node.Command(t.Context(), s.account(), resolver.CommandSettingsSet, settings)
	ok(t, err)
	s.want("POST", "/sender-domains", `{"domain":"mail.example.com"}`, nil)
	opened := s.segment("Opened", fmt.Sprintf(`{"kind":"activity","event":"email_opened","where":[{"property":"flow_id","op":"in","value":[%q,"x"]},{"property":"campaign_id","op":"exists"}]}`, flow.ID))
	var after struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", fmt.Sprintf(`{"name":"G","trigger":{"type":"event","event":"flow_completed","where":[{"property":"flow_id","op":"=","value":%q}]},"steps":[]}`, flow.ID), &after)
	// In order: the last is deleted, which ends a use of the one before it.
	for _, c := range []struct {
		path string
		want []handler.Use
	}{
		{"/lists/" + l.ID, []handler.Use{{Kind: "segment", ID: base.ID, Name: "Base"}}},
		{"/templates/" + tpl.ID, []handler.Use{{Kind: "flow", ID: flow.ID, Name: "F"}, {Kind: "setting", ID: "confirm_template_id", Name: "confirm_template_id"}}},
		{"/sender-domains/mail.example.com", []handler.Use{{Kind: "flow", ID: flow.ID, Name: "F"}}},
		{"/flows/" + flow.ID, []handler.Use{{Kind: "segment", ID: opened.ID, Name: "Opened"}, {Kind: "flow", ID: after.ID, Name: "G"}}},
		{"/flows/" + after.ID, []handler.Use{}},
		{"/segments/" + base.ID, []handler.Use{{Kind: "segment", ID: user.ID, Name: "User"}, {Kind: "flow", ID: flow.ID, Name: "F"}}},
		{"/segments/" + user.ID, []handler.Use{}},
	} {
		path, want := c.path, c.want
		var got []handler.Use
		s.want("GET", path+"/used-in", "", &got)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is used in %v, expected %v", path, got, want)
		}
		if strings.HasPrefix(path, "/sender-domains") || strings.HasPrefix(path, "/flows") {
			continue
		}
		status, a := s.do("DELETE", path, "")
		if len(want) == 0 != (status == 200) || len(want) > 0 && !strings.Contains(a.Message, want[0].ID) {
			t.Errorf("DELETE %s: %d %s", path, status, a.Message)
		}
	}
	for _, path := range []string{"/lists/x", "/segments/x", "/templates/x", "/sender-domains/x.io", "/flows/x", "/campaigns/x"} {
		if status, _ := s.do("GET", path+"/used-in", ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}
