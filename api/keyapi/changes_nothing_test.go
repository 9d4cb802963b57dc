package keyapi

import (
	"strings"
	"testing"
)

// TestIdentifiersAreNotRemovedInSilence: an empty identifier in a change is refused with the
// remedy, and nothing else of the call is done. Names are removed by it. Putting a contact
// on file on a list warns of identifiers that are given and that it has not got.
func TestIdentifiersAreNotRemovedInSilence(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	k, p := keyCaller{s}, person{s, s.token}
	var x struct {
		ID        string  `json:"_id"`
		FirstName *string `json:"first_name"`
		Warning   string
	}
	k.must("POST", "/contacts", `{"email":"ann@x.io","phone":"+49 1","external_id":"7","first_name":"Ann"}`, &x)
	id := x.ID
	const why = " must not be empty: identifiers are added and never removed; leave it out, and it stays as it is"
	for _, field := range []string{"email", "phone", "external_id"} {
		body := `{"first_name":"Bob","` + field + `":""}`
		_, b := s.with(s.creds.APIKey, "PATCH", "/api/v1/contacts/"+id, body)
		if !strings.Contains(b, `"failure"`) || !strings.Contains(b, `"`+field+why+`"`) {
			t.Errorf("%s: %s", body, b)
		}
		p.refused("PATCH", "/profiles/"+id, body, 400, field, field+why)
	}
	if k.must("GET", "/contacts/"+id, "", &x); *x.FirstName != "Ann" {
		t.Errorf("a refused change was done: %+v", x)
	}
	x.FirstName = nil
	if k.must("PATCH", "/contacts/"+id, `{"first_name":""}`, &x); x.FirstName != nil {
		t.Errorf("the name is %q", *x.FirstName)
	}

	k.must("POST", "/lists", `{"name":"News"}`, &x)
	list := "/lists/" + x.ID + "/contacts"
	for body, want := range map[string]string{
		`"phone":"+491","external_id":" 7 "`: "",
		`"phone":"","first_name":"Ann"`:      "",
		`"phone":"+492","external_id":"7"`:   "phone",
		`"phone":"+492","external_id":"8"`:   "external_id and phone",
	} {
		x.Warning = ""
		k.must("POST", list, `{"email":"ann@x.io",`+body+`}`, &x)
		if want != "" {
			want += " left out: the e-mail is on file; change the contact by PATCH /contacts/{id}"
		}
		if x.Warning != want {
			t.Errorf("on the list with %s: warning %q, want %q", body, x.Warning, want)
		}
	}
	x.Warning = ""
	if k.must("POST", list, `{"email":"new@x.io","phone":"+493"}`, &x); x.Warning != "" {
		t.Errorf("a new contact: warning %q", x.Warning)
	}
}
