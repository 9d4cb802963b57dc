package signup

import (
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/forms"
)

// Options configure a [API]. All must be set but PublicURL.
type Options struct {
	// PublicURL is where people reach the service.
	PublicURL string
	// Views is how many views of a form are counted and not recorded yet.
	Views func(account uint64, form string) uint64
	// Now is the wall clock.
	Now func() time.Time
}

// API answers the calls about signup forms.
type API struct{ opts Options }

// New returns the calls about signup forms.
func New(opts Options) *API { return &API{opts} }

// form is a form as it is answered.
type form struct {
	ID string `json:"_id"`
	forms.Content
	URL       string        `json:"url"`
	HTML      string        `json:"html"`
	Figures   forms.Figures `json:"figures"`
	CreatedAt string        `json:"created_at"`
	UpdatedAt string        `json:"updated_at"`
	Version   string        `json:"version"`
}

func (a *API) newForm(v *resolver.View, account uint64, f *forms.Form) form {
	out := form{ID: f.ID, Content: f.Content, URL: a.opts.PublicURL + tracking.FormsPath + f.ID, CreatedAt: record.Time(f.CreatedMs), UpdatedAt: record.Time(f.UpdatedMs), Version: f.Version(), Figures: a.total(v, account, f.ID)}
	out.HTML = snippet(f, out.URL)
	return out
}

// total are the figures of a form, with the views that are not recorded yet.
func (a *API) total(v *resolver.View, account uint64, id string) forms.Figures {
	x := v.Forms().Total(id)
	x.Views += a.opts.Views(account, id)
	return x
}

var errNoForm = handler.NotFound("there is no form with this id")

func (a *API) list(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []forms.Form { return v.Forms().All() }, func(f *forms.Form) paging.Age { return paging.Age{CreatedMs: f.CreatedMs, ID: f.ID} },
		func(v *resolver.View, f *forms.Form) form { return a.newForm(v, c.Account, f) })
}

func (a *API) read(c *handler.Call, id string) (out form, err error) {
	err = c.Read(func(v *resolver.View) error {
		f, ok := v.Forms().Get(id)
		if !ok {
			return errNoForm
		}
		out = a.newForm(v, c.Account, &f)
		return nil
	})
	return out, err
}

func (a *API) get(c *handler.Call) (any, error) { return a.read(c, c.PathID()) }

// body is what a form is made or changed with.
type body struct {
	Name        *string        `json:"name"`
	Title       *string        `json:"title"`
	Text        *string        `json:"text"`
	Fields      *[]forms.Field `json:"fields"`
	Button      *string        `json:"button"`
	Lists       *[]string      `json:"list_ids"`
	Consent     *forms.Consent `json:"consent"`
	DoubleOptIn *bool          `json:"double_opt_in"`
	Message     *string        `json:"message"`
	RedirectURL *string        `json:"redirect_url"`
	Published   *bool          `json:"published"`

	AllowedOrigins *[]string `json:"allowed_origins"`
}

func (b *body) save() forms.Save {
	return forms.Save{Name: b.Name, Title: b.Title, Text: b.Text, Fields: b.Fields, Button: b.Button, Lists: b.Lists, Consent: b.Consent, DoubleOptIn: b.DoubleOptIn,
		Message: b.Message, RedirectURL: b.RedirectURL, Published: b.Published, AllowedOrigins: b.AllowedOrigins}
}

func (a *API) create(c *handler.Call) (any, error) {
	var in body
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	id, err := c.CommandID(forms.CommandCreate, in.save())
	if err != nil {
		return nil, err
	}
	return a.read(c, id)
}

func (a *API) update(c *handler.Call) (any, error) {
	var in body
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	save := in.save()
	save.ID, save.IfVersion = c.PathID(), c.IfVersion()
	if _, err := c.CommandID(forms.CommandUpdate, save); err != nil {
		return nil, err
	}
	return a.read(c, save.ID)
}

func (a *API) remove(c *handler.Call) (any, error) {
	return nil, c.Command(forms.CommandDelete, forms.Delete{ID: c.PathID()}, nil)
}

// stats answers GET /forms/{id}/stats.
func (a *API) stats(c *handler.Call) (any, error) {
	from, to, err := c.Days()
	if err != nil {
		return nil, err
	}
	var out struct {
		Total forms.Figures `json:"total"`
		Days  []forms.Day   `json:"days"`
	}
	err = c.Read(func(v *resolver.View) error {
		if _, ok := v.Forms().Get(c.PathID()); !ok {
			return errNoForm
		}
		out.Total, out.Days = v.Forms().Total(c.PathID()), v.Forms().Days(c.PathID(), from, to)
		return nil
	})
	if out.Days == nil {
		out.Days = []forms.Day{}
	}
	// What is counted and not recorded yet will be of today.
	if waiting := a.opts.Views(c.Account, c.PathID()); waiting > 0 {
		out.Total.Views += waiting
		if today := a.opts.Now().UTC().Format(time.DateOnly); from <= today && today <= to {
			if n := len(out.Days); n == 0 || out.Days[n-1].Date < today {
				out.Days = append(out.Days, forms.Day{Date: today})
			}
			out.Days[len(out.Days)-1].Views += waiting
		}
	}
	return out, err
}
