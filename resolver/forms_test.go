package resolver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

const hourMs = 60 * 60 * 1000

// form makes a published form.
func (r *recorder) form(c forms.Save) string {
	r.t.Helper()
	if c.Name == nil {
		c.Name = addr("Newsletter")
	}
	if c.Fields == nil {
		c.Fields = &[]forms.Field{
			{Name: "email", Label: "E-mail", Required: true}, {Name: "phone", Label: "Phone"}, {Name: "first_name", Label: "First name"},
			{Name: "attributes.city", Label: "City"},
		}
	}
	c.Published = addr(true)
	return answer[struct{ ID string }](r.t, r.must(forms.CommandCreate, c)).ID
}

// sends sends a form, whose key is new unless it has one.
func (r *recorder) sends(c forms.Submit) forms.Reply {
	r.t.Helper()
	if c.Keys == nil {
		c.Keys = []string{fmt.Sprintf("key %d", r.m.next)}
	}
	return answer[forms.Reply](r.t, r.must(forms.CommandSubmit, c))
}

// asked lists the submissions that messages which wait to be sent ask to confirm, with the
// address, and takes the messages off the queue.
func (r *recorder) asked() (to, ids []string) {
	r.t.Helper()
	for _, w := range r.due(outbox.KindEmail) {
		var m messages.Mail
		if err := json.Unmarshal(w.Payload, &m); err != nil {
			r.t.Fatal(err)
		}
		if m.Submission != "" {
			to, ids = append(to, m.To), append(ids, m.Submission)
		}
		r.done(w, outbox.ResultSent)
	}
	return to, ids
}

func (r *recorder) idOf(email string) string {
	r.t.Helper()
	h, _ := r.m.accounts[testAccount].Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(email), &r.m.tx.normal)
	o := r.m.accounts[testAccount].Profiles.Identifiers.Owner(h)
	if o >= r.m.accounts[testAccount].Profiles.Headers.Count {
		return ""
	}
	return r.m.accounts[testAccount].Profiles.Headers.Get(o).ID.String()
}

func newsConsent() *forms.Consent {
	return &forms.Consent{Text: "Send me news.", Channels: []string{"email", "sms"}, Required: true}
}

// TestFormsStory: forms and their submissions from submission to erasure: people who are new,
// known, unsubscribed, suppressed, merged and erased, through restarts.
func TestFormsStory(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	news, plain := r.topic("news"), r.list("plain")
	form := r.form(forms.Save{Lists: &[]string{news, plain}, Consent: newsConsent()})
	segment := r.segment(`{"kind":"activity","event":"signup_form_submitted","did":true}`)
	r.refuses("the list is used by form", contacts.CommandListDelete, contacts.ListDelete{ID: plain})

	// A new person.
	send := forms.Submit{ID: form, Email: "ann@x.io", Consented: true, Keys: []string{"one", "zero"},
		Values: forms.Values{Phone: "+491701234567", FirstName: "Ann", Attributes: json.RawMessage(`{"city":"Ulm"}`), Wording: "Send me news.", Client: "192.0.2.0/24"}}
	if r.sends(send).Repeated || !r.sends(send).Repeated {
		t.Error("a repeat counts")
	}
	second := send
	second.Keys = []string{"two", "one"}
	if !r.sends(second).Repeated {
		t.Error("a repeat in the next window counts")
	}
	ann := r.idOf("ann@x.io")
	p := r.profile(ann)
	if p.FirstName != "Ann" || string(p.Attributes) != `{"city":"Ulm"}` || len(p.Lists) != 2 || p.Consent("email").Source != "form" || p.Consent("sms").Status != "subscribed" || !p.IsContact || p.SuppressionReason("email") != "" {
		t.Fatalf("%+v", p)
	}
	r.logged(ann, "News of news subscribed form 192.0.2.0/24", "sms subscribed form 192.0.2.0/24", "email subscribed form 192.0.2.0/24")
	if e := r.entries(ann)[2]; e.Form != form || e.Wording != "Send me news." || e.SubmittedMs != 0 {
		t.Errorf("%+v", e)
	}
	if n := r.countIn(segment); n != 1 {
		t.Errorf("%d in the segment", n)
	}
	if to, _ := r.asked(); len(to) != 0 {
		t.Errorf("%q are asked to confirm", to)
	}

	// Somebody else sends her address: nothing changes until she confirms.
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ann, Channel: "email", Status: "unsubscribed", Source: "api"})
	r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: news}}})
	r.now += 1000
	before := fmt.Sprintf("%+v", r.profile(ann))
	send.Keys, send.FirstName, send.Phone, send.Attributes = nil, "Eve", "+491709999999", json.RawMessage(`{"city":"Rom"}`)
	r.sends(send)
	if after := fmt.Sprintf("%+v", r.profile(ann)); after != before {
		t.Fatalf("before %s\nafter %s", before, after)
	}
	to, ids := r.asked()
	if !slices.Equal(to, []string{"ann@x.io"}) {
		t.Fatalf("%q are asked", to)
	}
	r.sends(send) // within the hour: the message stands
	if to, _ := r.asked(); len(to) != 0 {
		t.Errorf("%q are asked again", to)
	}
	d.reload()
	r.now += hourMs
	r.must(forms.CommandConfirm, forms.Confirm{Profile: ann, Submission: ids[0]})
	p = r.profile(ann)
	if p.FirstName != "Eve" || len(p.Lists) != 2 || p.Consent("email").Status != "subscribed" || p.Consent("email").Source != "form" {
		t.Errorf("%+v", p)
	}
	if e := r.entries(ann); e[0].SubmittedMs != r.now-hourMs || e[0].Form != form {
		t.Errorf("%+v", e)
	}
	// The link once more, and after she has unsubscribed again.
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ann, Channel: "email", Status: "unsubscribed", Source: "api"})
	r.must(forms.CommandConfirm, forms.Confirm{Profile: ann, Submission: ids[0]})
	if p = r.profile(ann); p.Consent("email").Status != "unsubscribed" {
		t.Error("an old link subscribed again")
	}
	if got := r.view().Forms().Total(form); got != (forms.Figures{Submissions: 3, Conversions: 2}) {
		t.Errorf("%+v", got)
	}

	// Suppressed: no message. Expired: too late.
	bob := r.contact(contacts.Create{Email: "bob@x.io"})
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: bob, Channel: "email", Reason: "suppressed", Source: "api"})
	r.sends(forms.Submit{ID: form, Email: "bob@x.io", Consented: true})
	cid := r.contact(contacts.Create{Email: "cid@x.io"})
	r.sends(forms.Submit{ID: form, Email: "cid@x.io", Consented: true})
	if to, ids = r.asked(); !slices.Equal(to, []string{"cid@x.io"}) {
		t.Fatalf("%q are asked", to)
	}
	r.now += forms.HeldForMs
	r.refuses("older than a week", forms.CommandConfirm, forms.Confirm{Profile: cid, Submission: ids[0]})

	// A merge takes what waits along; the phone of another person is left out.
	r.sends(forms.Submit{ID: form, Email: "cid@x.io", Consented: true, Values: forms.Values{Phone: "+491701234567", LastName: "Cid"}})
	_, ids = r.asked()
	r.events(eventlog.Event{Type: []byte("seen"), Email: []byte("dee@x.io"), ExternalID: []byte("7")})
	dee := r.idOf("dee@x.io")
	r.events(eventlog.Event{Type: []byte("seen"), ExternalID: []byte("8"), Email: []byte("cid@x.io")})
	r.must(forms.CommandConfirm, forms.Confirm{Profile: cid, Submission: ids[0]})
	if p = r.profile(cid); p.LastName != "Cid" || p.Consent("sms").Status == "subscribed" || p.Newest(IdentityPhone) != "" || len(p.Lists) != 2 {
		t.Errorf("%+v", p)
	}
	r.sends(forms.Submit{ID: form, Email: "dee@x.io", Consented: true, Values: forms.Values{LastName: "Dee"}})
	_, ids = r.asked()
	r.refuses("older than a week", forms.CommandConfirm, forms.Confirm{Profile: cid, Submission: ids[0]}) // of another
	d.reload()

	// Erased: nothing of the person is left, and nothing more is taken.
	r.must(CommandContactErase, ContactErase{ID: dee})
	r.refuses("no contact", forms.CommandConfirm, forms.Confirm{Profile: dee, Submission: ids[0]})
	figures := r.view().Forms().Total(form)
	r.sends(forms.Submit{ID: form, Email: "dee@x.io", Consented: true})
	if figures.Submissions++; r.idOf("dee@x.io") != "" {
		t.Error("an erased person is back")
	}
	figures.Unconfirmable++
	if got := r.view().Forms().Total(form); got != figures {
		t.Errorf("%+v, expected %+v", got, figures)
	}

	// Double opt-in: the profile is made, and pending.
	r.must(forms.CommandUpdate, signed(forms.Save{ID: form, DoubleOptIn: addr(true), RedirectURL: addr("https://shop.example/thanks")}, "usr_1"))
	r.sends(forms.Submit{ID: form, Email: "fay@x.io", Consented: true, Values: forms.Values{FirstName: "Fay", Wording: "Send me news."}})
	fay := r.idOf("fay@x.io")
	if p = r.profile(fay); p.FirstName != "" || len(p.Lists) != 0 || p.IsContact || p.SuppressionReason("email") != "pending" || p.Consent("email").Status != "subscribed" {
		t.Errorf("%+v", p)
	}
	_, ids = r.asked()
	r.now += 1000
	r.must(forms.CommandConfirm, forms.Confirm{Profile: fay, Submission: ids[0]})
	if p = r.profile(fay); p.FirstName != "Fay" || len(p.Lists) != 2 || !p.IsContact || p.SuppressionReason("email") != "" {
		t.Errorf("%+v", p)
	}
	r.logged(fay, "News of news subscribed form", "email subscribed form", "email subscribed form")

	// Views, days, and the end.
	r.must(forms.CommandViewed, forms.Viewed{ID: form, Views: 7})
	r.now += 400 * 24 * hourMs
	r.must(forms.CommandViewed, forms.Viewed{ID: form, Views: 2})
	if days := r.view().Forms().Days(form, "0000", "9999"); len(days) != 1 || days[0].Views != 2 || r.view().Forms().Total(form).Views != 9 {
		t.Errorf("%+v", days)
	}
	r.must(forms.CommandUpdate, forms.Save{ID: form, Published: addr(false)})
	r.refuses("no published form", forms.CommandSubmit, forms.Submit{ID: form, Email: "x@x.io", Keys: []string{"x"}})
	r.must(forms.CommandDelete, forms.Delete{ID: form})
	r.refuses("no form", forms.CommandDelete, forms.Delete{ID: form})
	if len(r.view().Forms().Days(form, "0000", "9999")) != 0 || r.view().Forms().Total(form) != (forms.Figures{}) {
		t.Error("figures of a deleted form are left")
	}
	d.reload()
}

// TestFormsRefuse: what no form can be is refused, and the message names the field.
func TestFormsRefuse(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	form := r.form(forms.Save{})
	long := func(n int) *string { return addr(strings.Repeat("x", n)) }
	fields := func(f ...forms.Field) *[]forms.Field { return &f }
	email := forms.Field{Name: "email", Label: "E", Required: true}
	attribute := func(f forms.Field) *[]forms.Field { return fields(email, f) }
	consent := func(text string, channels ...string) *forms.Consent {
		return &forms.Consent{Text: text, Channels: channels}
	}
	for field, list := range map[string][]forms.Save{
		"name": {{Name: addr(" ")}, {Name: long(201)}, {Name: addr("a\x01")}}, "title": {{Title: addr("")}, {Title: long(201)}}, "text": {{Text: long(4001)}, {Text: addr("\x1b")}},
		"button": {{Button: addr("")}, {Button: long(101)}}, "message": {{Message: long(1001)}, {Message: addr("")}},
		"fields": {
			{Fields: &[]forms.Field{}}, {Fields: fields(forms.Field{Name: "email", Label: "E"})}, {Fields: fields(email, email)}, {Fields: attribute(forms.Field{Name: "age", Label: "A"})},
			{Fields: attribute(forms.Field{Name: "attributes.", Label: "A"})}, {Fields: attribute(forms.Field{Name: "attributes.a b", Label: "A"})}, {Fields: attribute(forms.Field{Name: "attributes.a"})},
			{Fields: attribute(forms.Field{Name: "attributes.a", Label: "A", Type: "file"})}, {Fields: attribute(forms.Field{Name: "phone", Label: "A", Type: "number"})},
			{Fields: attribute(forms.Field{Name: "attributes.a", Label: "A", Type: "choice"})}, {Fields: attribute(forms.Field{Name: "attributes.a", Label: "A", Options: []string{"x"}})},
			{Fields: attribute(forms.Field{Name: "attributes.a", Label: "A", Type: "choice", Options: []string{"x", "x"}})}, {Fields: addr(make([]forms.Field, forms.MaxFields+1))},
			{Fields: attribute(forms.Field{Name: "attributes.a", Label: "A", Type: "choice", Options: make([]string, forms.MaxOptions+1)})},
		},
		"consent": {
			{Consent: consent("", "email")}, {Consent: consent("yes")}, {Consent: consent("yes", "pigeon")}, {Consent: consent("yes", "email", "email")}, {Consent: consent(*long(1001), "email")},
			{Consent: consent("yes", "sms"), Fields: fields(email)},
		},
		"double_opt_in":   {{DoubleOptIn: addr(true), Fields: fields(forms.Field{Name: "phone", Label: "P", Required: true})}},
		"list_ids":        {{Lists: &[]string{"lst_none"}}, {Lists: addr(make([]string, forms.MaxLists+1))}},
		"allowed_origins": {{AllowedOrigins: &[]string{"shop.example"}}, {AllowedOrigins: addr(make([]string, forms.MaxOrigins+1))}},
		"redirect_url": {
			{RedirectURL: addr("http://shop.example/")}, {RedirectURL: addr("//shop.example")}, {RedirectURL: addr("javascript:alert(1)")}, {RedirectURL: addr("https://u@shop.example")}, {RedirectURL: addr("https:///x")},
			{RedirectURL: addr("https://a.example;script-src")}, {RedirectURL: addr("https://a.example/\n")}, {RedirectURL: addr("https://" + strings.Repeat("a", 2000))}, {RedirectURL: addr("/thanks")}, {RedirectURL: addr("http://127.0.0.1.example/")},
		},
	} {
		for _, c := range list {
			for _, name := range []string{forms.CommandCreate, forms.CommandUpdate} {
				if name == forms.CommandUpdate {
					c.ID = form
				} else {
					if c.Name == nil {
						c.Name = addr("F")
					}
					if c.Fields == nil {
						c.Fields = fields(email, forms.Field{Name: "phone", Label: "P"})
					}
				}
				out := r.command(name, c)
				if out.Refusal == nil || out.Refusal.Field != field || !strings.HasPrefix(out.Refusal.Message, field) {
					t.Errorf("%s of %+v: %+v, expected a refusal of %s", name, c, out.Refusal, field)
				}
			}
		}
	}
	r.refusedWhole("invalid", forms.CommandCreate, forms.Save{Name: addr("F")})
	r.refusedWhole("invalid", forms.CommandCreate, forms.Save{Fields: fields(email)})
	r.refusedWhole("not_found", forms.CommandUpdate, forms.Save{ID: "frm_none", Name: addr("F")})
	r.refusedWhole("not_found", forms.CommandViewed, forms.Viewed{ID: "frm_none", Views: 1})
	r.refusedWhole("invalid", forms.CommandViewed, forms.Viewed{ID: form})
	seen, _ := r.view().Forms().Get(form)
	r.must(forms.CommandUpdate, forms.Save{ID: form, Title: addr("Other"), IfVersion: seen.Version()})
	r.refusedWhole("conflict", forms.CommandUpdate, forms.Save{ID: form, Title: addr("Mine"), IfVersion: seen.Version()})
	for _, address := range []string{"https://shop.example/thanks?a=b#c", "http://localhost:3000/", "http://127.0.0.1/", "http://[::1]:8080/"} {
		r.must(forms.CommandUpdate, forms.Save{ID: form, RedirectURL: addr(address)})
	}
	for _, c := range []forms.Submit{
		{Keys: []string{"k"}}, {Email: "a@x.io"}, {Email: "a@x.io", Keys: []string{""}}, {Email: "a@x.io", Keys: []string{"a", "b", "c"}}, {Email: *long(513), Keys: []string{"k"}},
		{Email: "a@x.io", Keys: []string{"k"}, Values: forms.Values{FirstName: *long(513)}}, {Email: "a@x.io", Keys: []string{"k"}, Values: forms.Values{Attributes: json.RawMessage("[]")}},
	} {
		c.ID = form
		r.refusedWhole("invalid", forms.CommandSubmit, c)
	}
	for range forms.MaxForms - 1 {
		r.form(forms.Save{})
	}
	r.refusedWhole("limit", forms.CommandCreate, forms.Save{Name: addr("F"), Fields: fields(email)})
}

// TestChangedConsentIsReadAgain: a submission whose person read another consent than the form
// has by now changes nothing. One of before versions were sent along counts as it is.
func TestChangedConsentIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	form := r.form(forms.Save{Consent: &forms.Consent{Text: "Send me e-mails.", Channels: []string{"email"}}})
	read, _ := r.view().Forms().Get(form)
	submit := func(key, version string) forms.Submit {
		return forms.Submit{ID: form, Email: key + "@x.io", Keys: []string{key}, Consented: true, ConsentVersion: version, Values: forms.Values{Wording: read.Consent.Text}}
	}
	r.must(forms.CommandSubmit, submit("a", read.ConsentVersion()))
	r.must(forms.CommandUpdate, forms.Save{ID: form, Consent: &forms.Consent{Text: "Send me e-mails and texts.", Channels: []string{"email", "sms"}}})
	r.refusedWhole("conflict", forms.CommandSubmit, submit("b", read.ConsentVersion()))
	now, _ := r.view().Forms().Get(form)
	r.must(forms.CommandSubmit, submit("b", now.ConsentVersion()))
	r.must(forms.CommandSubmit, submit("c", ""))
}

// TestNuisanceIsBounded: whatever is sent with a person's address, that person gets one message
// an hour for a form, and few a week.
func TestNuisanceIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.contact(contacts.Create{Email: "ann@x.io"})
	list := []string{r.form(forms.Save{}), r.form(forms.Save{}), r.form(forms.Save{})}
	mails := 0
	for range 24 * 7 * 2 { // a week
		for _, f := range list {
			r.sends(forms.Submit{ID: f, Email: "ANN@x.io"})
		}
		to, _ := r.asked()
		mails += len(to)
		r.now += hourMs / 2
	}
	if mails < 5 || mails > forms.MaxHeld+7 {
		t.Errorf("%d messages in a week", mails)
	}
}

// TestFormsMatchNaive: people who are new, known, unsubscribed, suppressed or off a topic, and
// forms with their addresses at random. What an oracle does not expect never happens: above all
// that anything of a person on file changes before that person confirms.
func TestFormsMatchNaive(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count[uint64](5, 30)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareForms(t, seed) })
	}
}

func compareForms(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	r.m.accounts[testAccount].EmailCredits = 1 << 30
	list := r.topic("news")
	plain, strict := r.form(forms.Save{Lists: &[]string{list}, Consent: newsConsent()}), r.form(forms.Save{Lists: &[]string{list}, Consent: newsConsent(), DoubleOptIn: addr(true)})
	type person struct {
		known, suppressed, pending, on bool
		name, consent                  string
		converted                      int
	}
	type waiting struct {
		email, submission, name, form string
		at                            int64
		done                          bool
	}
	people := map[string]*person{}
	var held []*waiting
	emails := []string{"a@x.io", "b@x.io", "c@x.io", "d@x.io", "e@x.io"}
	for _, e := range emails {
		people[e] = &person{}
	}
	figures := map[string]*forms.Figures{plain: {}, strict: {}}
	for step := range 150 {
		r.now += int64(rng.IntN(40)) * hourMs / 60
		email := pick(rng, emails...)
		p := people[email]
		id := r.idOf(email)
		if (id != "") != p.known {
			t.Fatalf("step %d: %s is on file: %v", step, email, id != "")
		}
		switch rng.IntN(8) {
		case 0, 1, 2, 3:
			f, name := pick(rng, plain, strict), fmt.Sprintf("name %d", step)
			figures[f].Submissions++
			r.sends(forms.Submit{ID: f, Email: email, Consented: true, Values: forms.Values{FirstName: name}})
			to, ids := r.asked()
			mine := slices.DeleteFunc(slices.Clone(held), func(w *waiting) bool { return w.email != email || w.at+forms.HeldForMs <= r.now })
			again := slices.ContainsFunc(mine, func(w *waiting) bool { return w.form == f && w.at > r.now-hourMs })
			slices.SortStableFunc(mine, func(x, y *waiting) int { return int(x.at - y.at) })
			full := len(mine) >= forms.MaxHeld && mine[len(mine)-1].at > r.now-24*hourMs
			switch {
			case !p.known && f == plain:
				p.known, p.name, p.consent, p.on = true, name, "subscribed", true
				p.converted++
				figures[f].Conversions++
			case again:
			case full || p.suppressed:
				figures[f].Unconfirmable++
			default:
				if !p.known {
					p.known, p.pending, p.consent = true, true, "subscribed"
				}
				if len(ids) != 1 || to[0] != email {
					t.Fatalf("step %d: %q are asked, expected %s", step, to, email)
				}
				if len(mine) >= forms.MaxHeld {
					held = slices.DeleteFunc(held, func(w *waiting) bool { return w == mine[0] })
				}
				held = append(held, &waiting{email: email, submission: ids[0], name: name, form: f, at: r.now})
				ids = nil
			}
			if len(ids) > 0 {
				t.Fatalf("step %d: %q are asked", step, to)
			}
		case 4, 5:
			if len(held) == 0 {
				break
			}
			w := pick(rng, held...)
			c := forms.Confirm{Profile: r.idOf(w.email), Submission: w.submission}
			if w.at+forms.HeldForMs <= r.now {
				r.refusedWhole("not_found", forms.CommandConfirm, c)
				break
			}
			r.must(forms.CommandConfirm, c)
			if p = people[w.email]; !w.done {
				w.done = true
				p.name, p.consent, p.on, p.pending = w.name, "subscribed", true, false
				p.converted++
				figures[w.form].Conversions++
			}
		case 6:
			if !p.known {
				break
			}
			switch rng.IntN(3) {
			case 0:
				r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed", Source: "api"})
				p.consent, p.pending = "unsubscribed", false
			case 1:
				if p.suppressed = !p.suppressed; p.suppressed {
					r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "suppressed", Source: "api"})
				} else {
					r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Source: "api"})
				}
			default:
				r.chooses(id, messages.Preferences{Topics: []messages.TopicChoice{{ListID: list}}})
				p.on = false
			}
		default:
			if rng.IntN(4) == 0 {
				d.reload()
			}
		}
		for email, p := range people {
			if !p.known {
				continue
			}
			id := r.idOf(email)
			got := r.profile(id)
			blocked := map[bool]string{true: "pending"}[p.pending]
			if p.suppressed {
				blocked = "suppressed"
			}
			if got.FirstName != p.name || got.Consent("email").Status != p.consent || (len(got.Lists) == 1) != p.on || got.SuppressionReason("email") != blocked {
				t.Fatalf("step %d: %s is %+v, expected %+v", step, email, got, p)
			}
		}
		for f, want := range figures {
			if got := r.view().Forms().Total(f); got != *want {
				t.Fatalf("step %d: %+v, expected %+v", step, got, *want)
			}
		}
	}
	converted := 0
	for _, p := range people {
		converted += p.converted
	}
	if n := r.seen(forms.EventSubmitted); n != converted {
		t.Errorf("%d events, expected %d", n, converted)
	}
}

// TestFormCommands: each command of forms in one log, which is a golden one.
func TestFormCommands(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.DoubleOptIn = true
	r := newRecorder(t, s)
	form := r.form(forms.Save{Lists: &[]string{r.topic("news")}, Consent: newsConsent()})
	flow := r.flow(strings.Replace(mailFlow, "signed_up", forms.EventSubmitted, 1))
	r.must(forms.CommandUpdate, forms.Save{ID: form, Title: addr("News"), Consent: newsConsent()})
	r.must(forms.CommandViewed, forms.Viewed{ID: form, Views: 3})
	r.sends(forms.Submit{ID: form, Email: "ann@x.io", Consented: true, Values: forms.Values{Phone: "+491701234567", FirstName: "Ann", Wording: "Send me news."}})
	_, ids := r.asked()
	r.now += 1000
	if len(ids) != 1 || r.seen(forms.EventSubmitted) != 0 {
		t.Fatalf("%q are asked, %d took effect", ids, r.seen(forms.EventSubmitted))
	}
	r.must(forms.CommandConfirm, forms.Confirm{Profile: r.idOf("ann@x.io"), Submission: ids[0]})
	p, _ := ParseProfileID(r.idOf("ann@x.io"))
	r.expectEnrolment(flow, p, "#1 mail:queued completed")
	if got := r.view().Forms().Total(form); got != (forms.Figures{Views: 3, Submissions: 1, Conversions: 1}) {
		t.Errorf("%+v", got)
	}
	r.must(forms.CommandDelete, forms.Delete{ID: form})
}

// TestFormsAskTheAddressOnFile: mail to one spelling of an address may be delivered to
// somebody else than mail to another, of which the normal form is the same. The message goes
// to the spelling on file, which stays.
func TestFormsAskTheAddressOnFile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	form := r.form(forms.Save{Consent: newsConsent()})
	ann := r.contact(contacts.Create{Email: "ann@straße.de"})
	r.sends(forms.Submit{ID: form, Email: "ann@straẞe.de", Consented: true, Values: forms.Values{Phone: "+491709999999"}})
	to, ids := r.asked()
	if !slices.Equal(to, []string{"ann@straße.de"}) {
		t.Fatalf("%q are asked", to)
	}
	r.must(forms.CommandConfirm, forms.Confirm{Profile: ann, Submission: ids[0]})
	if p := r.profile(ann); p.Newest(IdentityEmail) != "ann@straße.de" {
		t.Errorf("the address is %s", p.Newest(IdentityEmail))
	}
}

// TestAFormAsksOnceAnHour: an address gets one message an hour of a form, also where the first was
// confirmed within it. Under older rules the next one was sent at once.
func TestAFormAsksOnceAnHour(t *testing.T) {
	t.Parallel()
	for rules, again := range map[int]int{ApplyVersion: 0, 24: 1} {
		d := newDurableUnder(t, DefaultSettings(), rules)
		r := d.recorder
		form, other := r.form(forms.Save{}), r.form(forms.Save{Name: addr("Other")})
		ann := r.contact(contacts.Create{Email: "ann@x.io"})
		send := func(form string, want int) (ids []string) {
			t.Helper()
			r.sends(forms.Submit{ID: form, Email: "ann@x.io", Values: forms.Values{FirstName: fmt.Sprint(r.now)}})
			if _, ids = r.asked(); len(ids) != want {
				t.Fatalf("under rules %d: %d messages, want %d", rules, len(ids), want)
			}
			return ids
		}
		ids := send(form, 1)
		r.now += hourMs / 2
		r.must(forms.CommandConfirm, forms.Confirm{Profile: ann, Submission: ids[0]})
		d.reload()
		send(form, again)
		send(other, 1)
		r.now += hourMs/2 - 1
		send(form, 0)
		if again == 1 {
			continue // within the hour of the second message
		}
		r.now++
		send(form, 1)
	}
}
