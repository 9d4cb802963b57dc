package links

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/clientaddr"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/weborigin"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/forms"
)

// The fields of a form beside those that it asks for.
const (
	// fieldToken is of the hosted page: when it was shown, and a nonce.
	fieldToken = "form_token"
	// fieldTrap is one that people do not see: what fills it in is a program.
	fieldTrap = "website"
	// fieldConsent is ticked by who agrees, fieldConsentVersion says to what.
	fieldConsent        = "consent"
	fieldConsentVersion = "consent_version"
)

const (
	// A form that is sent faster than this was not filled in by a person.
	formMinimum = time.Second
	// formMaximum is for how long a page that was opened can be sent.
	formMaximum = 24 * time.Hour
	// formWindow is in which the same content without a token is a repeat, in its window and
	// the one before.
	formWindow = 10 * time.Minute
	maxDigits  = 20 // of a phone
	minDigits  = 5
)

// formPage is the content of a form's page.
type formPage struct {
	Company resolver.Company
	forms.Form
	Token   string
	Values  url.Values
	Faults  map[string]string // by field
	Alert   string
	account uint64
	key     tracking.Key
}

// Value is the submitted value of a field.
func (p *formPage) Value(name string) string { return p.Values.Get(name) }

var errNoFormHere = errors.New("no published form")

func formOperations() []operation.Operation {
	page := func(status, about string) shape.Member {
		var headers shape.Ordered
		if status == "429" || status == "503" {
			headers = shape.Ordered{operation.RetryAfter}
		}
		return shape.Pair(status, operation.Plain(about, "text/html", "", headers))
	}
	faults := shape.Ordered{page("404", "No published form has this id."), page("503", "Not just now.")}
	return []operation.Operation{
		{Method: "GET", Path: "/forms/{id}", ID: "formPage", Summary: "Show a signup form", About: "The hosted page of a form, without scripts. Sites that the form allows can show it in a frame.",
			Other: append(shape.Ordered{page("200", "The page.")}, faults...)},
		{Method: "POST", Path: "/forms/{id}", ID: "sendForm", Summary: "Send a signup form",
			About: "From the hosted page, or from a plain `<form>` on a site that the form allows. Whoever sends it gets the same answer, whether the address is known, unsubscribed or suppressed, and also where a program fills in the field that people do not see. Nothing of a person on file changes until that person confirms.",
			Body: shape.Object(
				shape.Opt(forms.FieldEmail, shape.Text("ann@example.com", "A field of the form, as are the following.")),
				shape.Opt(forms.FieldPhone, shape.Text("+4930123456", "")), shape.Opt(forms.FieldFirstName, shape.Text("Ann", "")), shape.Opt(forms.FieldLastName, shape.Text("Lee", "")),
				shape.Opt(fieldConsent, shape.Text("1", "Ticked: the person agrees to the form's consent.")),
				shape.Opt(fieldConsentVersion, shape.Text("3f2a9c0d1e4b5a67", "Which text the person read. If the form has another by now, nothing is taken and the page asks again.")),
				shape.Opt(fieldToken, shape.Text("AAABk2…", "Of the hosted page: when it was shown, and that it is taken once.")),
				shape.Opt(fieldTrap, shape.Text("", "Stays empty.")),
			).Open(), BodyRules: operation.BodyRules{Media: "application/x-www-form-urlencoded"},
			Other: append(shape.Ordered{page("200", "Taken: the form's message."), shape.Pair("303", operation.Plain("Taken: on to the form's redirect_url.", "", "", shape.Ordered{operation.Header("Location", "The form's own.", "https://shop.example/thanks")})),
				page("400", "This is no form, or a field is missing or wrong: the page says which."), page("403", "The form does not allow the site that sent it."), page("409", "The consent has another text by now, or the page was open for too long: it is shown again."), page("413", "Too much was sent."), page("429", "Too often in a minute.")}, faults...)},
	}
}

// formPage answers GET and POST of the page of a form.
func (a *API) formPage(rc *fasthttp.RequestCtx) {
	defer a.guard(rc)
	if !rc.IsGet() && !rc.IsHead() && !rc.IsPost() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD, POST")
		writePage(rc, pageMethod)
		return
	}
	id, _ := rc.UserValue("id").(string)
	p, err := a.form(id)
	switch {
	case errors.Is(err, errNoFormHere):
		writePage(rc, pageNoSuchForm)
	case err != nil:
		a.fail(rc, err)
	case rc.IsPost():
		a.sendForm(rc, p)
	default:
		if rc.IsGet() && len(rc.Request.Header.Peek("Sec-Purpose")) == 0 && !tracking.JudgeAgent(string(rc.UserAgent())).Suspect() {
			a.views.add(p.account, p.ID)
		}
		a.writeForm(rc, p, fasthttp.StatusOK)
	}
}

// form reads what the page of a form shows.
func (a *API) form(id string) (*formPage, error) {
	account, ok := forms.AccountOf(id)
	if !ok {
		return nil, errNoFormHere
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	p := &formPage{account: account}
	err := a.opts.Node.Read(ctx, account, func(v *resolver.View) (err error) {
		f, ok := v.Forms().Get(id)
		if !ok || !f.Published {
			return errNoFormHere
		}
		p.Company, p.Form = v.Company(), f
		p.key, err = compose.AccountKey(v, account)
		return err
	})
	if errors.Is(err, resolver.ErrNoAccount) {
		err = errNoFormHere
	}
	return p, err
}

// writeForm answers with the page of a form.
func (a *API) writeForm(rc *fasthttp.RequestCtx, p *formPage, status int) {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	p.Token = p.key.FormToken(p.ID, a.opts.Now().UnixMilli(), nonce)
	beginPage(rc, status)
	p.setPolicy(rc)
	if err := formHTML.Execute(rc.Response.BodyWriter(), p); err != nil {
		panic(err) // the template fits what it is given, and memory takes all
	}
}

// setPolicy lets the allowed origins show the page in a frame, and the form lead to its own
// redirect: browsers hold a redirect after a form to the policy of the form's page.
func (p *formPage) setPolicy(rc *fasthttp.RequestCtx) {
	frames, actions := "'none'", "'self'"
	if len(p.AllowedOrigins) > 0 {
		frames = "'self' " + strings.Join(p.AllowedOrigins, " ")
	}
	if u, err := url.Parse(p.RedirectURL); err == nil && u.Host != "" {
		actions += " " + u.Scheme + "://" + u.Host
	}
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; form-action "+actions+"; frame-ancestors "+frames+"; base-uri 'none'")
}

// sendForm takes a form.
func (a *API) sendForm(rc *fasthttp.RequestCtx, p *formPage) {
	// Browsers say null for pages that send no referrer, as the hosted one.
	if origin := string(rc.Request.Header.Peek(fasthttp.HeaderOrigin)); origin != "" && origin != "null" && !sameHost(origin, string(rc.Host())) && !weborigin.Allowed(p.AllowedOrigins, origin) {
		writePage(rc, pageNotAllowed)
		return
	}
	body, err := ingest.ReadBody(rc, a.opts.Memory, maxFormBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		writePage(rc, pageTooLarge)
		return
	case err != nil:
		writePage(rc, pageFault)
		return
	}
	client, _ := netip.AddrFromSlice(rc.RemoteIP())
	s, fault := readForm(&p.Form, body)
	now := a.opts.Now()
	atMs, nonce, signed := p.key.ParseFormToken(p.ID, s.values.Get(fieldToken))
	hosted := s.values.Get(fieldToken) != ""
	if !a.formRates.allow(now, p.ID, client, hosted && signed) {
		writePage(rc, pageFormTooOften)
		return
	}
	p.Values, p.Faults = s.values, s.faults
	reread := p.Consent != nil && s.values.Get(fieldConsentVersion) != p.ConsentVersion()
	if reread { // the tick was for another text, so it is not shown again
		delete(p.Values, fieldConsent)
	}
	age := time.Duration(now.UnixMilli()-atMs) * time.Millisecond
	switch {
	case fault != nil:
		writePage(rc, pageNoForm)
		return
	case s.values.Get(fieldTrap) != "", hosted && !signed, hosted && age < formMinimum:
		// A program: it gets the answer that people get, and nothing is taken.
		a.writeTaken(rc, p)
		return
	case len(s.faults) > 0:
		p.Alert = "Please look at the fields that are marked, and send the form again."
		a.writeForm(rc, p, fasthttp.StatusBadRequest)
		return
	case hosted && age > formMaximum:
		p.Alert = "This page was open for very long. Please send the form again."
		a.writeForm(rc, p, fasthttp.StatusConflict)
		return
	case reread:
		p.Alert = "Please read what you agree to, and send the form again."
		a.writeForm(rc, p, fasthttp.StatusConflict)
		return
	}
	c := s.submit
	c.ID, c.Client = p.ID, clientaddr.Network(client)
	if p.Consent != nil {
		c.ConsentVersion = p.ConsentVersion()
	}
	if c.Consented {
		c.Wording = p.Consent.Text
	}
	if hosted {
		c.Keys = []string{hex.EncodeToString(nonce[:])}
	} else {
		window := now.UnixMilli() / formWindow.Milliseconds()
		content := c.Client + "\x00" + string(must.JSON(c))
		c.Keys = []string{p.key.FormKey(p.ID, window, content), p.key.FormKey(p.ID, window-1, content)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	_, err = a.opts.Node.Command(ctx, p.account, forms.CommandSubmit, c)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) {
		switch refusal.Field {
		case "id": // it was deleted meanwhile, or is not published any more
			writePage(rc, pageNoSuchForm)
			return
		case "consent_version": // the form was changed meanwhile
			writePage(rc, pageFormChanged)
			return
		}
		err = nil // of an erased person's address: the answer does not show it
	}
	if err != nil {
		a.fail(rc, err)
		return
	}
	a.writeTaken(rc, p)
}

// sameHost reports whether an origin is that of the request's own host.
func sameHost(origin, host string) bool {
	_, rest, _ := strings.Cut(origin, "://")
	return host != "" && strings.EqualFold(rest, host)
}

// writeTaken answers that a form was taken: with its message, or by its redirect.
func (a *API) writeTaken(rc *fasthttp.RequestCtx, p *formPage) {
	if p.RedirectURL != "" {
		noStore(rc)
		rc.SetStatusCode(fasthttp.StatusSeeOther)
		rc.Response.Header.Set(fasthttp.HeaderLocation, p.RedirectURL)
		return
	}
	beginPage(rc, fasthttp.StatusOK)
	p.setPolicy(rc)
	if err := formTakenHTML.Execute(rc.Response.BodyWriter(), p); err != nil {
		panic(err) // the template fits what it is given, and memory takes all
	}
}

// sentForm is a form that was sent.
type sentForm struct {
	values url.Values
	faults map[string]string // by field
	submit forms.Submit
}

var errForm = errors.New("not a form")

// readForm reads what was sent by a form. What people can mend is in faults.
func readForm(f *forms.Form, body []byte) (s sentForm, err error) {
	s.faults = map[string]string{}
	if s.values, err = url.ParseQuery(string(body)); err != nil {
		s.values = url.Values{}
		return s, errForm
	}
	attributes := map[string]any{}
	for i := range f.Fields {
		x := &f.Fields[i]
		text := strings.TrimSpace(s.values.Get(x.Name))
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			s.faults[x.Name] = "Please leave out special characters."
			continue
		}
		if text == "" {
			if x.Required && x.Type != forms.TypeBoolean {
				s.faults[x.Name] = "Please fill this in."
			} else if x.Required {
				s.faults[x.Name] = "Please tick this."
			}
			continue
		}
		if len(text) > forms.MaxValueBytes {
			s.faults[x.Name] = "This is too long."
			continue
		}
		if fault := s.take(x, text, attributes); fault != "" {
			s.faults[x.Name] = fault
		}
	}
	if f.Consent != nil {
		s.submit.Consented = s.values.Get(fieldConsent) != ""
		if f.Consent.Required && !s.submit.Consented {
			s.faults[fieldConsent] = "Please tick this to continue."
		}
	}
	if len(attributes) > 0 {
		s.submit.Attributes = json.RawMessage(must.JSON(attributes))
	}
	return s, nil
}

// number is a number as people write it; separated may be thousands or a fraction of three
// digits.
var (
	number    = regexp.MustCompile(`^[+-]?[0-9]+([.,][0-9]+)?$`)
	separated = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$`)
)

// address is an e-mail address as far as a form needs to know: one @ with something on both
// sides, and a dot behind it.
var address = regexp.MustCompile(`^[^\s@<>,;:"()\[\]\\]+@[^\s@<>,;:"()\[\]\\.]+(\.[^\s@<>,;:"()\[\]\\.]+)+$`)

const maxAddress = 254 // bytes, as RFC 5321 has it

// take takes over what was sent for a field; it returns what is wrong with it.
func (s *sentForm) take(x *forms.Field, text string, attributes map[string]any) (fault string) {
	switch x.Name {
	case forms.FieldEmail:
		if len(text) > maxAddress || !address.MatchString(text) {
			return "Please check this e-mail address."
		}
		s.submit.Email = text
		return ""
	case forms.FieldPhone:
		digits := strings.Count(strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return '0'
			}
			return r
		}, text), "0")
		// Without its country code nothing could be sent to it.
		if after, ok := strings.CutPrefix(text, "00"); ok {
			text = "+" + after
		}
		if digits < minDigits || digits > maxDigits || strings.Trim(text, "+0123456789 ()-./") != "" || strings.LastIndexByte(text, '+') != 0 {
			return "Please check this number; write it with its country code, such as +49 30 123456."
		}
		s.submit.Phone = text
		return ""
	case forms.FieldFirstName:
		s.submit.FirstName = text
		return ""
	case forms.FieldLastName:
		s.submit.LastName = text
		return ""
	}
	name := strings.TrimPrefix(x.Name, forms.AttributePrefix)
	switch x.Type {
	case forms.TypeNumber:
		if separated.MatchString(text) {
			return "Please write the number without separators of thousands."
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", "."), 64)
		if err != nil || !number.MatchString(text) || n > 1e15 || n < -1e15 || n != n {
			return "Please write a number."
		}
		attributes[name] = n
	case forms.TypeBoolean:
		attributes[name] = true
	case forms.TypeDate:
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return "Please write a date as year-month-day, such as 2026-11-26."
		}
		attributes[name] = text
	case forms.TypeChoice:
		if !slices.Contains(x.Options, text) {
			return "Please choose one of these."
		}
		attributes[name] = text
	default:
		attributes[name] = text
	}
	return ""
}
