package settings

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/view"
)

// Domains are the calls about sender domains.
func (a *API) Domains() handler.Group {
	domain := shape.Named("SenderDomain", shape.Object(
		shape.Req("domain", shape.Text("mail.example.com", "")), shape.Req("verified", shape.Boolean(true, "")), shape.Req("verified_at", shape.Instant("").OrNull()),
		shape.Req("verified_by", shape.Word("", "dns", "administrator").OrNull()), shape.Req("created_at", shape.Instant("")),
		shape.Req("records", shape.List(shape.Object(
			shape.Req("type", shape.Text("TXT", "")), shape.Req("name", shape.Text("muster1._domainkey.mail.example.com", "")), shape.Req("value", shape.Text("v=DKIM1; k=ed25519; p=…", "")),
			shape.Req("purpose", shape.Text("dkim", "ownership, dkim or dmarc.")), shape.Req("required", shape.Boolean(true, "Whether the domain is verified only with it.")),
			shape.Opt("ok", shape.Boolean(true, "After a verification: whether it is published.")), shape.Opt("problem", shape.Text("", "After a verification: what is wrong; empty when nothing is.")),
		), "What DNS must say. It may take up to 48 hours to be seen everywhere.")),
	))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: sender domains", Title: "Sender domains", About: "Domains that e-mails may come from."}, Routes: []handler.Route{
		{Handle: a.listDomains, Operation: operation.Operation{Method: "GET", Path: "/sender-domains", Permission: "settings:read", ID: "listDomains", Summary: "List sender domains", Data: shape.List(domain, "")}},
		{Handle: a.addDomain, Operation: operation.Operation{Method: "POST", Path: "/sender-domains", Permission: "settings:write", ID: "addDomain", Summary: "Add a sender domain", About: "The answer has the records to publish.",
			Body: shape.Object(shape.Req("domain", shape.Text("mail.example.com", ""))), Data: domain}},
		{Handle: a.getDomain, Operation: operation.Operation{Method: "GET", Path: "/sender-domains/{id}", Permission: "settings:read", ID: "getDomain", Summary: "Read a sender domain", Data: domain}},
		{Handle: a.verifyDomain, Operation: operation.Operation{Method: "POST", Path: "/sender-domains/{id}/verify", Permission: "settings:write", ID: "verifyDomain", Summary: "Verify a sender domain", About: "DNS is asked. Where records are missing or wrong, the message and the records say so.",
			Body: shape.Object(shape.Opt("force", shape.Boolean(false, "An administrator of the system vouches for the domain, and DNS is not asked.").Default(false))), BodyRules: operation.BodyRules{Optional: true}, Data: domain}},
		{Handle: a.deleteDomain, Operation: operation.Operation{Method: "DELETE", Path: "/sender-domains/{id}", Permission: "settings:write", ID: "deleteDomain", Summary: "Remove a sender domain"}},
		handler.UsedInRoute("/sender-domains", "settings:read", "domainUsedIn", "a sender domain", "Campaigns that are not over, and flows, whose sender is on it. It can be removed all the same.", view.UsedIn.Domain, errNoDomain),
	}}
}

const (
	domainSelector = "muster1"
	// verifyTimeout bounds the look-ups of a domain's records.
	verifyTimeout = 20 * time.Second
)

// domain is a sender domain as it is answered. Its private key never is.
type domain struct {
	Domain     string         `json:"domain"`
	Verified   bool           `json:"verified"`
	VerifiedAt *string        `json:"verified_at"`
	VerifiedBy *string        `json:"verified_by"` // dns or administrator
	CreatedAt  string         `json:"created_at"`
	Records    []domainRecord `json:"records"`
}

// domainRecord is a record that DNS must have.
type domainRecord struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Value    string `json:"value"`
	Purpose  string `json:"purpose"` // ownership, dkim or dmarc
	Required bool   `json:"required"`
	// OK and Problem are the finding of a verification.
	OK      *bool   `json:"ok,omitempty"`
	Problem *string `json:"problem,omitempty"`
}

func setup(d *domains.Domain) (s email.DomainSetup, err error) {
	s = email.DomainSetup{Domain: d.Name, Token: d.Token}
	if d.PrivateKey == "" {
		return s, nil
	}
	key, err := email.ParseKey(d.Name, d.Selector, []byte(d.PrivateKey))
	if err == nil {
		s.Keys = []*email.Key{key}
	}
	return s, err
}

func newDomainRecord(r email.Record) domainRecord {
	return domainRecord{Type: r.Type, Name: r.Name, Value: r.Value, Purpose: r.Purpose, Required: r.Required}
}

func newDomain(d *domains.Domain) (out domain, err error) {
	out = domain{Domain: d.Name, Verified: d.VerifiedMs != 0, VerifiedAt: record.TimeOrNull(d.VerifiedMs), CreatedAt: record.Time(d.CreatedMs), Records: []domainRecord{}}
	if d.VerifiedBy != "" {
		out.VerifiedBy = &d.VerifiedBy
	}
	s, err := setup(d)
	if err != nil {
		return out, err
	}
	records, err := s.Records()
	for _, r := range records {
		out.Records = append(out.Records, newDomainRecord(r))
	}
	return out, err
}

func (a *API) domainOf(c *handler.Call, name string) (d domains.Domain, err error) {
	err = c.Read(func(v *resolver.View) error {
		var ok bool
		if d, ok = v.Domains().Get(name); !ok {
			return errNoDomain
		}
		return nil
	})
	return d, err
}

func (a *API) listDomains(c *handler.Call) (any, error) {
	var all []domains.Domain
	if err := c.Read(func(v *resolver.View) error { all = v.Domains().All(); return nil }); err != nil {
		return nil, err
	}
	out := []domain{}
	for i := range all {
		d, err := newDomain(&all[i])
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func (a *API) getDomain(c *handler.Call) (any, error) { return a.showDomain(c, c.Param("id")) }

func (a *API) showDomain(c *handler.Call, name string) (any, error) {
	d, err := a.domainOf(c, name)
	if err != nil {
		return nil, err
	}
	return newDomain(&d)
}

// addDomain answers POST /sender-domains with the records to publish.
func (a *API) addDomain(c *handler.Call) (any, error) {
	var in struct {
		Domain string `json:"domain"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	key, _, err := email.GenerateKeys()
	if err != nil {
		return nil, err
	}
	token, err := tokens.Random(a.opts.Rand, "", 24)
	if err != nil {
		return nil, err
	}
	d := domains.Domain{Name: in.Domain, Selector: domainSelector, PrivateKey: string(key), Token: token}
	s, err := setup(&d)
	if err == nil {
		_, err = s.Records()
	}
	if err != nil {
		return nil, handler.BadField("domain", "domain: %s", err)
	}
	if err := c.Command(domains.CommandAdd, d, nil); err != nil {
		return nil, err
	}
	return a.showDomain(c, in.Domain)
}

// verifyDomain answers POST /sender-domains/{domain}/verify: DNS is asked. A
// system administrator may vouch for the domain instead, with force.
func (a *API) verifyDomain(c *handler.Call) (any, error) {
	var in struct {
		Force bool `json:"force"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	d, err := a.domainOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	if in.Force {
		if !c.User.Admin {
			return nil, &handler.Problem{Status: http.StatusForbidden, Field: "force", Message: "force: only administrators of the system may vouch for a domain"}
		}
		if err := c.Command(domains.CommandVerify, domains.Name{Name: d.Name, By: "administrator"}, nil); err != nil {
			return nil, err
		}
		return a.showDomain(c, d.Name)
	}
	s, err := setup(&d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	found, err := (&email.Verifier{Resolver: a.opts.DNS}).Verify(ctx, s)
	if err != nil {
		return nil, &handler.Problem{Status: http.StatusServiceUnavailable, RetryAfter: 30 * time.Second, Message: "DNS did not answer, so nothing was found out: " + err.Error()}
	}
	if found.Verified {
		if err := c.Command(domains.CommandVerify, domains.Name{Name: d.Name, By: "dns", Token: d.Token}, nil); err != nil {
			return nil, err
		}
		if d, err = a.domainOf(c, d.Name); err != nil {
			return nil, err
		}
	}
	out, err := newDomain(&d)
	if err != nil {
		return nil, err
	}
	out.Records = out.Records[:0]
	for i := range found.Checks {
		x := &found.Checks[i]
		r := newDomainRecord(x.Record)
		r.OK, r.Problem = &x.OK, &x.Problem
		out.Records = append(out.Records, r)
	}
	message := ""
	if !found.Verified {
		message = "not all required records are right; see the problem of each"
	}
	return handler.Note{Data: out, Message: message}, nil
}

func (a *API) deleteDomain(c *handler.Call) (any, error) {
	return nil, c.Command(domains.CommandDelete, domains.Name{Name: c.Param("id")}, nil)
}

var errNoDomain = handler.NotFound("there is no such sender domain")
