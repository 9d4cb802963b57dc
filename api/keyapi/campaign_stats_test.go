package keyapi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
)

// TestStatsOfPeopleHaveThoseOfKeys: the statistics of a campaign in the console say what those for
// API keys say, but for the rates, which follow from the others.
func TestStatsOfPeopleHaveThoseOfKeys(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":1,"date":"2026-01-01","subject":"s","body":"b"}`, &c)
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
	var ofKeys, ofPeople map[string]any
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", "", &ofKeys)
	x.console1("GET", "/campaigns/"+c.ID+"/stats", "", &ofPeople)
	if len(ofKeys) < 20 {
		t.Fatalf("%v", ofKeys)
	}
	for name, value := range ofKeys {
		if name == "emails_sent" {
			name = "sent"
		}
		if got, there := ofPeople[name]; !strings.HasSuffix(name, "_rate") && (!there || !reflect.DeepEqual(got, value)) {
			t.Errorf("%s is %v, and %v in the console", name, value, got)
		}
	}
}
