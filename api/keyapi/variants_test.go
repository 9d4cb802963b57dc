package keyapi

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver/campaigns"
)

// TestVariantFaultsNameTheVariant: what is wrong with a variant of an A/B test is named by its
// place; what is wrong with the campaign itself, by the campaign's field.
func TestVariantFaultsNameTheVariant(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	config, err := text.Twilio("AC0123", "tok", "+15550001111", x.remote.URL, false)
	ok(t, err)
	x.put("message", "sms", config)
	long := strings.Repeat("a", 1601)
	for _, c := range []struct{ campaign, test, want string }{
		{`"type":1,"subject":"s","body":"b"`, `"variants":[{},{"body":"{{frist_name}}"}]`, "variants[1].body: {{frist_name}} is not a merge tag"},
		{`"type":1,"subject":"s","body":"b"`, `"variants":[{"body":""},{}]`, "variants[0].body Field required"},
		{`"type":1,"subject":"s","body":"b"`, `"variants":[{},{},{"subject":"{{x"}]`, "variants[2].subject: merge tag at line 1, column 1"},
		{`"type":1,"subject":"s","body":"b"`, `"variants":[{"sender_name":"{{x"},{}]`, "variants[0].sender_name: merge tag"},
		{`"type":1,"subject":"s"`, `"variants":[{"body":"b"},{"subject":"t"}]`, "body Field required"},
		{`"type":2,"subject":"s","body":"b"`, `"variants":[{"subject":"A"},{"subject":"B"}]`, "variants[0].subject Input should be left out: messages by sms have no subject; give each variant a body"},
		{`"type":3,"body":"b"`, `"variants":[{"body":"c"},{"subject":"B"}]`, "variants[1].subject Input should be left out: messages by im have no subject"},
		{`"type":3,"service":"whatsapp","body":"b"`, `"variants":[{"body":"c"},{"subject":"B"}]`, "variants[1].subject Input should be left out: messages by whatsapp"},
		{`"type":3,"service":"whatsapp","whatsapp":{"template":"t","language":"en"}`, `"variants":[{},{"body":"B"}]`, "variants[1].body Input should be left out: the campaign sends a template"},
		{`"type":2,"body":"b"`, `"variants":[{"body":"b","sender_name":"Ann"},{}]`, "variants[0].sender_name Input should be left out"},
		{`"type":2,"body":"b"`, `"variants":[{"body":"b"},{"body":"` + long + `"}]`, "variants[1].body Input should have at most 1600 characters"},
		{`"type":2,"body":"b"`, `"variants":[{"body":"b"},{"body":"c"}],"metric":"opens"`, "metric Input should be clicks: no opens of an SMS are known"},
		{`"type":4,"subject":"s","body":"b"`, `"variants":[{"subject":"A"},{"subject":" "}]`, "variants[1].subject: Field required"},
		{`"type":4,"subject":"s","body":"b"`, `"variants":[{"subject":"A"},{"subject":"B","body":"{{x"}]`, "variants[1].body: merge tag"},
		{`"type":4,"service":"in_app","subject":"s","body":"b"`, `"variants":[{"subject":"A"},{"subject":"` + long[:201] + `"}]`, "variants[1].subject: Input should have 1 to 200 bytes"},
		{`"type":4,"service":"in_app","subject":"s","body":"b","link":"https://x.io"`, `"variants":[{"subject":"A"},{"body":"` + strings.Repeat("b", 2001) + `"}]`, "variants[1].body: Input should have at most 2000"},
	} {
		var saved record.Campaign
		x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"date":"2026-01-01",`+c.campaign+`}`, &saved)
		if m := x.call("failure", "POST", "/campaign/"+saved.ID+"/ab-test/start", `{"all_contacts":true,`+c.test+`}`, nil); !strings.HasPrefix(m, c.want) {
			t.Errorf("%s with %.80s: %s", c.campaign, c.test, m)
		}
	}
	// A text may have a subject of the campaign's own, as ever; its winner is chosen by clicks.
	var saved record.Campaign
	var stats struct {
		AB struct{ Metric string } `json:"ab_test"`
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","subject":"s","track_links":true,"body":"b"}`, &saved)
	x.call("success", "POST", "/campaign/"+saved.ID+"/ab-test/start", `{"all_contacts":true,"variants":[{"body":"b"},{"body":"c","subject":""}]}`, &stats)
	if stats.AB.Metric != "clicks" {
		t.Errorf("the metric of a text is %q", stats.AB.Metric)
	}
}

// The plain text that a template has does not go out beside the body of a variant.
func TestVariantBodyTakesThePlaceOfAllTexts(t *testing.T) {
	t.Parallel()
	body := "own"
	with := (&variantFields{Body: &body}).apply(campaigns.Content{HTML: "template", Text: "template", Subject: "s"})
	if with.HTML != body || with.Text != "" || with.Subject != "s" {
		t.Errorf("%+v", with)
	}
}
