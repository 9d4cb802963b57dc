package keyapi

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

// TestAuditOfCampaigns: the audit log has who made, changed, scheduled and sent a
// campaign, whether a person or a key made the call.
func TestAuditOfCampaigns(t *testing.T) {
	t.Parallel()
	s := withMailer(t, func(*email.Message) outcome.Result { return outcome.New(outcome.Accepted, "", "") })
	admin := person{s, s.token}
	ann := s.newPerson("ann", "contacts:write", "contacts:read", "lists:write", "lists:read", "campaigns:write", "campaigns:read")
	var list, byPerson, byKey struct {
		ID string `json:"_id"`
	}
	ann.must("POST", "/lists", `{"name":"Readers"}`, &list)
	ann.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"ann@people.example"}`, nil)
	const soon = `"2025-03-01T14:00:00+01:00"` // in an hour
	campaign := `{"name":"C","channel":1,"date":` + soon + `,"subject":"X","body":"<p>Hi</p>","list_id":["` + list.ID + `"]}`
	ann.must("POST", "/campaigns", campaign, &byPerson)
	ann.must("DELETE", "/campaigns/"+byPerson.ID+"/schedule", "", nil)
	ann.must("POST", "/campaigns/"+byPerson.ID+"/send", `{}`, nil)
	s.a("POST", "/campaign", campaign, &byKey)
	s.a("DELETE", "/campaign/"+byKey.ID+"/schedule", "", nil)
	s.a("POST", "/campaign/"+byKey.ID+"/send", `{}`, nil)
	for id, kind := range map[string]string{byPerson.ID: "user", byKey.ID: "key"} {
		var changes []struct {
			Action, Name string
			By           struct{ Kind, Name string }
		}
		admin.must("GET", "/audit?target_id="+id, "", &changes)
		var got []string
		for _, x := range slices.Backward(changes) {
			got = append(got, x.Action)
			if x.By.Kind != kind || x.By.Name == "" || x.Name != "C" {
				t.Errorf("%s: %+v, expected a %s", id, x, kind)
			}
		}
		if fmt.Sprint(got) != "[campaign.create campaign.unschedule campaign.start]" {
			t.Errorf("of a %s: %v", kind, got)
		}
	}
	// What an administrator of the system changes of a company is the company's to see.
	var companies []struct {
		ID string `json:"_id"`
	}
	admin.must("GET", "/companies", "", &companies)
	admin.must("POST", "/companies/"+companies[0].ID+"/credits", `{"amount":5}`, nil)
	admin.must("PATCH", "/companies/"+companies[0].ID, `{"name":"Renamed"}`, nil)
	var changes []struct {
		Action, Name string
		Fields       []string
	}
	admin.must("GET", "/audit?kind=company", "", &changes)
	if got := fmt.Sprint(changes); got != "[{company.update Renamed [name]} {company.credits "+changes[len(changes)-1].Name+" [amount]}]" {
		t.Error(got)
	}
}
