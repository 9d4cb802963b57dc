package keyapi

import (
	"fmt"
	"testing"
)

// consented is a contact with what its consents lead to.
type consented struct {
	ID         string `json:"_id"`
	Subscribed bool
	Status     *string
	FirstName  string `json:"first_name"`
	Consents   map[string]struct{ Status, Source string }
	SMSConsent struct{ Status, Source string } `json:"sms_consent"`
}

// TestPatchConsents: what PATCH /contacts/{id} says of consents is so afterwards, also
// in the console, and it changes all that it names or nothing.
func TestPatchConsents(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	var ann consented
	k.must("POST", "/contacts", `{"email":"ann@x.io","phone":"+491"}`, &ann)
	path := "/contacts/" + ann.ID
	patch := func(body string) (x consented) {
		t.Helper()
		k.must("PATCH", path, body, &x)
		var again consented
		if k.must("GET", path, "", &again); fmt.Sprint(again.Consents, again.Subscribed, again.FirstName) != fmt.Sprint(x.Consents, x.Subscribed, x.FirstName) {
			t.Errorf("PATCH answers %+v, GET %+v", x, again)
		}
		return x
	}
	if x := patch(`{"subscribed":false}`); x.Subscribed || *x.Status != "Unsubscribed" || x.Consents["email"].Source != "api" || x.Consents["sms"].Status != "subscribed" {
		t.Errorf("unsubscribed: %+v", x)
	}
	if x := patch(`{"subscribed":true}`); !x.Subscribed || *x.Status != "Subscribed" {
		t.Errorf("subscribed: %+v", x)
	}
	x := patch(`{"first_name":"Ann","consents":{"sms":{"status":"unsubscribed","source":"form"},"push":{"status":"subscribed"}}}`)
	if !x.Subscribed || x.FirstName != "Ann" || x.SMSConsent.Status != "unsubscribed" || x.SMSConsent.Source != "form" || x.Consents["push"].Status != "subscribed" || x.Consents["push"].Source != "api" {
		t.Errorf("consents: %+v", x)
	}
	var p struct {
		Consent map[string]struct{ Status, Source string }
	}
	if k.console1("GET", "/profiles/"+ann.ID, "", &p); p.Consent["sms"].Status != "unsubscribed" || p.Consent["push"].Status != "subscribed" || p.Consent["email"].Status != "subscribed" {
		t.Errorf("the console has %+v", p)
	}
	for body, says := range map[string]string{
		`{"first_name":"Eve","subscribd":true}`:                                               "subscribd is not a field of this call. Did you mean subscribed?",
		`{"first_name":"Eve","sms_consent":{"status":"subscribed"}}`:                          "sms_consent is not a field of this call",
		`{"first_name":"Eve","list_id":"lst_x"}`:                                              "list_id is not a field of this call",
		`{"first_name":"Eve","subscribed":"yes"}`:                                             "subscribed Input should be a valid boolean",
		`{"first_name":"Eve","consents":["sms"]}`:                                             `consents Input should be a valid object, such as {"sms": {"status": "unsubscribed"}}`,
		`{"first_name":"Eve","consents":{"sms":"unsubscribed"}}`:                              `consents.sms Input should be a valid object, such as {"status": "unsubscribed"}`,
		`{"first_name":"Eve","consents":{"sms":null}}`:                                        `consents.sms Input should be a valid object, such as {"status": "unsubscribed"}`,
		`{"first_name":"Eve","consents":{"sms":{}}}`:                                          "consents.sms.status Field required",
		`{"first_name":"Eve","consents":{"sms":{"status":1}}}`:                                "consents.sms.status Input should be a valid string",
		`{"first_name":"Eve","consents":{"sms":{"status":"maybe"}}}`:                          "status Input should be subscribed or unsubscribed",
		`{"first_name":"Eve","consents":{"sms":{"state":"subscribed"}}}`:                      "consents.sms.state is not a field of this call",
		`{"first_name":"Eve","consents":{"post":{"status":"subscribed"}}}`:                    "channel Input should be email, sms",
		`{"first_name":"Eve","subscribed":true,"consents":{"email":{"status":"subscribed"}}}`: "subscribed and consents.email say the same",
	} {
		k.refused("PATCH", path, body, says)
	}
	k.must("POST", "/profiles/"+ann.ID+"/suppression", `{"channel":"email","reason":"bounced"}`, nil)
	k.refused("PATCH", path, `{"first_name":"Eve","subscribed":true}`, "subscribed: the contact is bounced on email; lift the suppression first")
	var now consented
	if k.must("GET", path, "", &now); now.FirstName != "Ann" || now.Subscribed {
		t.Errorf("refused, and changed: %+v", now)
	}
	k.must("DELETE", "/profiles/"+ann.ID+"/suppression?channel=email", "", nil)
	if x := patch(`{"subscribed":true}`); !x.Subscribed {
		t.Errorf("not suppressed any more: %+v", x)
	}
}

// TestSubscribedOfContacts: a new contact is subscribed whatever is known of it. A
// visitor whom a list makes a contact has an e-mail that nothing was consented for: no
// campaign goes there, and the contact does not say so.
func TestSubscribedOfContacts(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	var x consented
	if k.must("POST", "/contacts", `{"external_id":"7"}`, &x); !x.Subscribed || x.Status != nil {
		t.Errorf("a new contact without an e-mail: %+v", x)
	}
	path := "/contacts/" + x.ID
	if k.must("PATCH", path, `{"email":"seven@x.io"}`, &x); x.Subscribed || x.Status != nil {
		t.Errorf("with an e-mail without a consent: %+v", x)
	}
	if k.must("PATCH", path, `{"subscribed":true}`, &x); !x.Subscribed {
		t.Errorf("with consent: %+v", x)
	}
	k.event("seen", "visitor@x.io")
	var list struct {
		ID string `json:"_id"`
	}
	k.must("POST", "/lists", `{"name":"l"}`, &list)
	if k.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"visitor@x.io"}`, &x); x.Subscribed || x.Status != nil {
		t.Errorf("a visitor on a list: %+v", x)
	}
	if k.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"new@x.io"}`, &x); !x.Subscribed || *x.Status != "Subscribed" {
		t.Errorf("a new contact on a list: %+v", x)
	}
}
