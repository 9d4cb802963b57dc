package accounts

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// Companies are the calls about companies, for administrators of the system.
func (a *API) Companies() handler.Group {
	one := shape.Named("Company", companyShape)
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: companies", Title: "Companies", About: "For administrators of the system."}, Routes: []handler.Route{
		{Handle: a.listCompanies, Operation: operation.Operation{Method: "GET", Path: "/companies", Permission: operation.SystemAdmin, ID: "listCompanies", Summary: "List companies", About: "In order of account ids.", Data: shape.List(one, ""), Paged: true}},
		{Handle: a.createCompany, Operation: operation.Operation{Method: "POST", Path: "/companies", Permission: operation.SystemAdmin, ID: "createCompany", Summary: "Create a company", About: "The answer has its credentials; they are not shown again.",
			Body: shape.Object(shape.Req("name", shape.Text("Example Ltd", "").Bytes(1, 200)), shape.Req("email", shape.Text("owner@example.com", "What its first user signs in with.").Bytes(1, 512)),
				shape.Opt("email_credits", shape.Integer(100000, "E-mails it may send at first.").Between(0, 1000000000).Default(100000))),
			Data: companyShape.Plus(shape.Req("app_secret", shape.Text("sk_live_Zm9v…", "")), shape.Req("api_key", shape.Text("svc_live_Zm9v…", "A key with all permissions.")),
				shape.Req("console_email", shape.Text("owner@example.com", "")), shape.Req("console_password", shape.Text("Zm9vYmFyYmF6…", "")))}},
		{Handle: a.getCompany, Operation: operation.Operation{Method: "GET", Path: "/companies/{id}", Permission: operation.SystemAdmin, ID: "getCompany", Summary: "Read a company", Data: one}},
		{Handle: a.updateCompany, Operation: operation.Operation{Method: "PATCH", Path: "/companies/{id}", Permission: operation.SystemAdmin, ID: "updateCompany", Summary: "Change a company", About: "Omitted fields keep their values.",
			Body: shape.Object(shape.Opt("name", shape.Text("Example Ltd", "").Bytes(1, 200)), shape.Opt("api_access", shape.Boolean(true, "Let API keys in.")), shape.Opt("active", shape.Boolean(true, "Let anybody in.")),
				shape.Opt("surface_c_per_minute", shape.Integer(600, "Requests of a key under `/v1` in any 60 seconds.").Between(1, 1000000))), Data: one}},
		{Handle: a.addCredits, Operation: operation.Operation{Method: "POST", Path: "/companies/{id}/credits", Permission: operation.SystemAdmin, ID: "addCredits", Summary: "Top up e-mail credits",
			Body: shape.Object(shape.Req("amount", shape.Integer(10000, "How many to add.").Between(1, 1000000000))), Data: shape.Object(shape.Req("email_credits", shape.Integer(19800, "How many there are now.")))}},
	}}
}

// company is a company with its account as administrators of the system see it.
type company struct {
	ID        string `json:"_id"`
	AccountID string `json:"account_id"`
	AppID     string `json:"app_id"`
	Name      string `json:"name"`
	// APIAccess lets API keys in; Active lets anybody in.
	APIAccess         bool   `json:"api_access"`
	Active            bool   `json:"active"`
	EmailCredits      int64  `json:"email_credits"`
	SurfaceCPerMinute int    `json:"surface_c_per_minute"`
	Users             int    `json:"users"`
	CreatedAt         string `json:"created_at"`
}

func newCompany(s view.CompanyState) company {
	return company{
		ID: s.ID, AccountID: resolver.AccountID(s.Account), AppID: resolver.AppID(s.Account), Name: s.Name,
		APIAccess: s.APIAccess, Active: s.Active, EmailCredits: s.EmailCredits, SurfaceCPerMinute: s.SurfaceCPerMinute,
		Users: s.Users, CreatedAt: record.Time(s.CreatedMs),
	}
}

// listCompanies answers GET /companies, in order of account ids.
func (a *API) listCompanies(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := c.Cursor(paging.Accounts, 8)
	if err != nil {
		return nil, err
	}
	q := companiesQuery{Limit: limit + 1}
	if after != nil {
		account := binary.BigEndian.Uint64(after)
		q.After = &account
	}
	states, err := a.companies(c.Ctx, q)
	if err != nil {
		return nil, err
	}
	out := handler.Page{}
	if len(states) > limit {
		states = states[:limit]
		out.Next = paging.Encode(paging.Accounts, binary.BigEndian.AppendUint64(nil, states[limit-1].Account))
	}
	list := []company{}
	for _, s := range states {
		list = append(list, newCompany(s))
	}
	out.Items = list
	return out, nil
}

// findCompany finds the account of the company in the path.
func (a *API) findCompany(c *handler.Call) (uint64, error) {
	list, err := a.companies(c.Ctx, companiesQuery{ID: c.PathID(), Limit: 1})
	switch {
	case err != nil:
		return 0, err
	case len(list) > 0:
		return list[0].Account, nil
	}
	return 0, handler.NotFound("there is no company with this id")
}

func (a *API) answerCompany(c *handler.Call, account uint64) (any, error) {
	s, err := a.company(c, account)
	if err != nil {
		return nil, err
	}
	return newCompany(s), nil
}

// getCompany answers GET /companies/{id}.
func (a *API) getCompany(c *handler.Call) (any, error) {
	account, err := a.findCompany(c)
	if err != nil {
		return nil, err
	}
	return a.answerCompany(c, account)
}

// createCompany answers POST /companies. Its credentials are in the answer and
// nowhere else.
func (a *API) createCompany(c *handler.Call) (any, error) {
	var in struct {
		Name  *string `json:"name"`
		Email *string `json:"email"`
		// EmailCredits is how many it begins with.
		EmailCredits *int64 `json:"email_credits"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Name == nil || strings.TrimSpace(*in.Name) == "":
		return nil, handler.BadField("name", "name is missing; name the company")
	case in.Email == nil || strings.TrimSpace(*in.Email) == "":
		return nil, handler.BadField("email", "email is missing; send the e-mail its first user signs in with")
	case len(*in.Email) > maxEmailBytes:
		return nil, handler.BadField("email", "email is longer than %d bytes", maxEmailBytes)
	}
	creds, err := NewCredentials(a.opts.Rand, "")
	if err != nil {
		return nil, err
	}
	creds.ConsoleEmail = *in.Email
	account, err := creds.Account()
	if err != nil {
		return nil, err
	}
	release, err := a.passwords.Acquire(c.Ctx)
	if err != nil {
		return nil, err
	}
	err = creds.open(c.Ctx, a.opts.Node, a.opts.Rand, resolver.CommandCompanyCreate, *in.Name, in.EmailCredits, a.opts.Password)
	release()
	if err != nil {
		return nil, err
	}
	s, err := a.company(c, account)
	if err != nil {
		return nil, err
	}
	return struct {
		company
		AppSecret       string `json:"app_secret"`
		APIKey          string `json:"api_key"`
		ConsoleEmail    string `json:"console_email"`
		ConsolePassword string `json:"console_password"`
	}{newCompany(s), creds.AppSecret, creds.APIKey, creds.ConsoleEmail, creds.ConsolePassword}, nil
}

// updateCompany answers PATCH /companies/{id}: what is left out stays.
func (a *API) updateCompany(c *handler.Call) (any, error) {
	var in resolver.CompanyUpdate
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	account, err := a.findCompany(c)
	if err != nil {
		return nil, err
	}
	if _, err := a.opts.Node.CommandBy(c.Ctx, account, resolver.CommandCompanyUpdate, in, c.ChangedBy()); err != nil {
		return nil, err
	}
	return a.answerCompany(c, account)
}

// addCredits answers POST /companies/{id}/credits.
func (a *API) addCredits(c *handler.Call) (any, error) {
	var in struct {
		Amount *int64 `json:"amount"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Amount == nil {
		return nil, handler.BadField("amount", "amount is missing; send how many e-mail credits to add")
	}
	account, err := a.findCompany(c)
	if err != nil {
		return nil, err
	}
	reply, err := a.opts.Node.CommandBy(c.Ctx, account, resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: *in.Amount}, c.ChangedBy())
	if err != nil {
		return nil, err
	}
	var out struct {
		EmailCredits int64 `json:"email_credits"`
	}
	if err := json.Unmarshal(reply, &out); err != nil {
		return nil, fmt.Errorf("reply to %s: %w", resolver.CommandCreditsAdd, err)
	}
	return out, nil
}
