package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver/contacts"
)

type dryAnswer struct {
	ProfileID string `json:"profile_id"`
	Begins    bool
	Outcome   string
	EndsAt    time.Time `json:"ends_at"`
	AsOf      time.Time `json:"as_of"`
	Steps     []struct {
		ID, Type, Result string
		At               time.Time
		Until            *time.Time
		Branch           *int
		Why              *struct{ Holds bool }
	}
}

func (d *dryAnswer) path() string {
	var out []string
	for _, s := range d.Steps {
		out = append(out, s.ID+" "+s.Result)
	}
	return strings.Join(out, ", ") + ": " + d.Outcome
}

// TestDryRun: it comes to the steps that the real enrolment comes to, with the reasons of
// conditions and the ends of waits, and nothing is sent or changed by it.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for i, country := range []string{"DE", "FR", "DE", "FR", "DE", "FR"} {
		s.event(fmt.Sprintf(`{"event_type":"bought","user":{"email":"p%d@x.io","geo":{"country":%q}},"properties":{"n":%d}}`, i, country, i))
	}
	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"try","trigger":{"type":"event","event":"go"},"reentry":"once","steps":[
		{"id":"tag","type":"tag","add":["tried"],"next":"wait"},
		{"id":"wait","type":"wait","seconds":259200,"next":"recent"},
		{"id":"recent","type":"condition","if":{"kind":"activity","event":"bought","window":{"last_days":2}},"yes":null,"no":"german"},
		{"id":"german","type":"condition","if":{"kind":"attribute","field":"geo.country","op":"=","value":"DE"},"yes":"split","no":"out"},
		{"id":"split","type":"split","branches":[{"weight":1,"next":"sms"},{"weight":1,"next":"out"}]},
		{"id":"sms","type":"sms","text":"Hello","next":null},
		{"id":"out","type":"exit"}]}`, &flow)
	ids := map[int]string{}
	for i := range 6 {
		var p struct {
			ID string `json:"profile_id"`
		}
		s.want("GET", fmt.Sprintf("/profiles?email=p%d@x.io", i), "", &p)
		ids[i] = p.ID
	}
	try := func(i int) (d dryAnswer) {
		s.want("POST", "/flows/"+flow.ID+"/dry-run", `{"profile_id":"`+ids[i]+`"}`, &d)
		return d
	}
	// The draft, and what was published of it, have the same to say.
	said := map[int]string{}
	for i := range 6 {
		d := try(i)
		said[i] = d.path()
		if d.ProfileID != ids[i] || !d.Begins || d.Steps[1].Until == nil || !d.Steps[1].Until.Equal(d.AsOf.Add(72*time.Hour)) || !d.EndsAt.Equal(*d.Steps[1].Until) || !d.Steps[2].At.Equal(*d.Steps[1].Until) {
			t.Errorf("%+v", d)
		}
		// At the end of the wait the purchase is too long ago.
		if d.Steps[2].Result != "no" || d.Steps[2].Why == nil || d.Steps[2].Why.Holds {
			t.Errorf("%s: %+v", d.path(), d.Steps[2])
		}
		german := i%2 == 0
		if (d.Steps[3].Result == "yes") != german || d.Steps[3].Why.Holds != german || german != (len(d.Steps) == 6) || german && d.Steps[4].Branch == nil {
			t.Errorf("%d: %s", i, d.path())
		}
	}
	var state [2]json.RawMessage
	for round := range state {
		for i, path := range []string{"/flows/" + flow.ID, "/profiles/" + ids[0], "/outbox"} {
			_, a := s.get(path)
			state[round] = append(append(state[round], byte('0'+i)), a.Data...)
		}
		for i := range 6 {
			try(i)
		}
	}
	if string(state[0]) != string(state[1]) || len(state[0]) < 500 {
		t.Errorf("a dry run has changed the state:\n%s\n%s", state[0], state[1])
	}
	s.want("POST", "/flows/"+flow.ID+"/publish", "", nil)
	for i := range 6 {
		if d := try(i); d.path() != said[i] {
			t.Errorf("published: %s, the draft: %s", d.path(), said[i])
		}
		s.event(fmt.Sprintf(`{"event_type":"go","user":{"email":"p%d@x.io"}}`, i))
		if try(i).Begins {
			t.Error("a profile that is in the flow must not enter it again")
		}
	}
	s.clock.Advance(73 * time.Hour)
	s.event(`{"event_type":"tick","user":{"email":"other@x.io"}}`)
	for i := range 6 {
		path := ""
		eventually.Holds(t, "the enrolment ends", func() bool {
			var real struct {
				Enrolments []struct {
					Status string
					Path   []struct{ ID, Result string }
				}
			}
			s.want("GET", "/flows/"+flow.ID+"/enrolments/"+ids[i], "", &real)
			var out []string
			for _, x := range real.Enrolments[0].Path {
				out = append(out, x.ID+" "+x.Result)
			}
			path = strings.Join(out, ", ") + ": " + real.Enrolments[0].Status
			return real.Enrolments[0].Status != "in_progress"
		})
		if path != said[i] {
			t.Errorf("it went %s, the dry run said %s", path, said[i])
		}
	}
	for _, x := range []struct{ path, body, says string }{
		{"/flows/" + flow.ID + "/dry-run", `{}`, "profile_id is missing"},
		{"/flows/" + flow.ID + "/dry-run", `{"profile_id":"prf_00000000000000000000000000000000"}`, "no profile"},
		{"/flows/flw_none/dry-run", `{"profile_id":"` + ids[0] + `"}`, "there is no flow with this id"},
	} {
		if code, a := s.do("POST", x.path, x.body); code < 400 || !strings.Contains(a.Message, x.says) {
			t.Errorf("%s %s: %d %s", x.path, x.body, code, a.Message)
		}
	}
	var draft struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"lacking","steps":[]}`, &draft)
	if code, a := s.do("POST", "/flows/"+draft.ID+"/dry-run", `{"profile_id":"`+ids[0]+`"}`); code != 409 || !strings.Contains(a.Message, "not complete") {
		t.Errorf("%d %s", code, a.Message)
	}
}

// TestDryRunOfMessages: a message that would have a hole is said not to be sent, by its tag.
func TestDryRunOfMessages(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var template struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/templates", `{"name":"t","subject":"Hello","html":"<p>Hello {{last_name}}</p>"}`, &template)
	contact := func(c contacts.Create) (r contacts.Reply) {
		b, err := s.node.Command(t.Context(), s.account(), contacts.CommandCreate, c)
		ok(t, err)
		ok(t, json.Unmarshal(b, &r))
		return r
	}
	ada, bob := contact(contacts.Create{Email: "ada@x.io", Phone: "+49301", FirstName: "Ada", LastName: "L"}), contact(contacts.Create{Email: "bob@x.io", Phone: "+49302"})
	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"try","trigger":{"type":"event","event":"go"},"steps":[
		{"id":"own","type":"email","subject":"{{event.order}}","body":"<p>Hello {{first_name}}</p>","next":"template"},
		{"id":"template","type":"email","template_id":"`+template.ID+`","next":"default"},
		{"id":"default","type":"email","subject":"Hello","body":"<p>{{first_name | friend}} {{unsubscribe_url}}</p>","next":"sms"},
		{"id":"sms","type":"sms","text":"Hello {{first_name}}","next":null}]}`, &flow)
	const first, last = "{{first_name}} has no value for this person, and no default", "{{last_name}} has no value for this person, and no default"
	for id, want := range map[string]string{ada.ID: "own queued, template queued, default queued, sms queued", bob.ID: "own failed " + first + ", template failed " + last + ", default queued, sms failed " + first} {
		var d struct {
			Steps []struct {
				ID, Result string
				Reason     *string
			}
		}
		s.want("POST", "/flows/"+flow.ID+"/dry-run", `{"profile_id":"`+id+`"}`, &d)
		var got []string
		for _, x := range d.Steps {
			text := x.ID + " " + x.Result
			if x.Reason != nil {
				text += " " + *x.Reason
			}
			got = append(got, text)
		}
		if have := strings.Join(got, ", "); have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

// TestDryRunOfCarts: a condition on an open cart is judged by the cart as it is now.
func TestDryRunOfCarts(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"cart","trigger":{"type":"event","event":"cart_updated"},"steps":[
		{"id":"open","type":"condition","open_cart":true,"if":{"kind":"activity","event":"cart_updated"},"yes":"tag","no":null},{"id":"tag","type":"tag","add":["reminded"]}]}`, &flow)
	for _, x := range []struct{ event, properties, want string }{
		{"cart_updated", `{"items":[{"name":"Shoe"}]}`, "open yes, tag done: completed"},
		{"cart_updated", `{"items":[]}`, "open no: completed"},
		{"cart_updated", `{"total":5}`, "open yes, tag done: completed"},
		{"order_placed", `{"order_id":"1","total":5,"currency":"EUR"}`, "open no: completed"},
	} {
		s.event(fmt.Sprintf(`{"event_type":%q,"user":{"email":"a@x.io"},"properties":%s}`, x.event, x.properties))
		var p struct {
			ID string `json:"profile_id"`
		}
		s.want("GET", "/profiles?email=a@x.io", "", &p)
		var d dryAnswer
		s.want("POST", "/flows/"+flow.ID+"/dry-run", `{"profile_id":"`+p.ID+`"}`, &d)
		if d.path() != x.want {
			t.Errorf("after %s %s: %s, want %s", x.event, x.properties, d.path(), x.want)
		}
	}
}
