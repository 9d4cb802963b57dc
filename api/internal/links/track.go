package links

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// maxFormBytes bounds the body of a form or a one-click request, which says
// nothing that is not in its path.
const maxFormBytes = 64 << 10

// Register adds what the links of messages lead to. Anybody may call it: a token
// that we signed says what it is about. The handler answers other methods itself.
func (a *API) Register(r *router.Router) {
	r.ANY(tracking.Path+"{token:*}", a.track)
	r.ANY(tracking.PreferencesPath+"{token:*}", a.preferencePage)
	r.ANY(tracking.FormsPath+"{id:*}", a.formPage)
	r.ANY(InAppPath+"{path:*}", a.inApp)
}

// Operations are what [API.track] answers.
func Operations() operation.Group {
	page := func(status, about string) shape.Member {
		var headers shape.Ordered
		if status == "503" {
			headers = shape.Ordered{operation.RetryAfter}
		}
		return shape.Pair(status, operation.Plain(about, "text/html", "", headers))
	}
	return operation.Group{Surface: operation.SurfacePublic, Tag: "Links of messages", Title: "Links of messages",
		About: "Messages lead here. What a link does, and for whom, is in its token, which the service signed; a forged or incomplete one is answered 404.", Operations: append([]operation.Operation{
			{Method: "GET", Path: "/t/{token}", ID: "followLink", Summary: "Follow a link", About: "The pixel of an open, the redirect of a click, the page of an unsubscribe or a confirmation. HEAD counts nothing.",
				Other: shape.Ordered{
					shape.Pair("200", shape.Pairs("description", "The open pixel, or a page with one button.", "content", shape.Pairs("image/gif", shape.Pairs(), "text/html", shape.Pairs("schema", shape.Pairs("type", "string"))))),
					shape.Pair("302", operation.Plain("A click: on to where the link leads.", "", "", shape.Ordered{operation.Header("Location", "Where to.", "https://example.com/sale")})),
					page("404", "No link of ours."), page("503", "Not just now."),
				}},
			{Method: "POST", Path: "/t/{token}", ID: "confirmLink", Summary: "Unsubscribe or confirm", About: "The button of the page, or a mail program's one-click unsubscribe (RFC 8058).",
				Body: shape.Object(shape.Opt("List-Unsubscribe", shape.Text("One-Click", "Sent by mail programs."))), BodyRules: operation.BodyRules{Optional: true, Media: "application/x-www-form-urlencoded"},
				Other: shape.Ordered{page("200", "Done."), page("404", "No link of ours."),
					shape.Pair("405", operation.Plain("A link that takes GET alone.", "text/html", "", shape.Ordered{operation.Header("Allow", "The methods that the link takes.", "GET, HEAD")})),
					page("413", "Too much was sent."), page("503", "Not just now.")}},
		}, slices.Concat(preferenceOperations(), formOperations(), inAppOperations())...)}
}

// followed is a link of a message with what it leads to.
type followed struct {
	claims  tracking.Claims
	sent    view.Sent
	links   []string // of the campaign's variant, for a click
	profile *view.Profile
	// address is the hash of the e-mail that a subscription is confirmed at. It is moved if
	// the profile has another by now, or it is not known at which the link arrived.
	address string
	moved   bool
	// left says that the submission of a form which the link confirms was confirmed before, and
	// that the person has unsubscribed since it was sent.
	left bool
}

// link is where a click leads, as its author wrote it or, of a message that keeps
// no table of links, as it was when the message went out; "" is nowhere.
func (f *followed) link() string {
	switch n := int(f.claims.Link); {
	case f.claims.URL != "":
		return f.claims.URL
	case n < len(f.links):
		return f.links[n]
	}
	return ""
}

// location is where a click leads for the profile.
func (f *followed) location() (string, error) {
	if f.claims.URL != "" {
		return f.claims.URL, nil // rendered and checked when the message was made
	}
	return compose.ClickLocation(f.link(), f.profile)
}

var (
	errNoLink  = errors.New("not a link of ours")
	errTooLate = errors.New("nothing waits to be confirmed any more")
	errLeft    = errors.New("the person has unsubscribed since the link was used")
	errMoved   = errors.New("the link was sent to another address than the present one")
)

// track answers a request for a link of a message.
func (a *API) track(rc *fasthttp.RequestCtx) {
	defer a.guard(rc)
	token, _ := rc.UserValue("token").(string)
	f, err := a.follow(token)
	switch {
	case errors.Is(err, errNoLink):
		writePage(rc, pageNoLink)
		return
	case err != nil:
		a.opts.Logger.Error("tracking failed", "error", err)
		writePage(rc, pageFault)
		return
	case f.claims.Kind == tracking.Preferences: // it has a path of its own
		writePage(rc, pageNoLink)
		return
	}
	switch {
	case rc.IsGet(), rc.IsHead():
		a.trackGet(rc, f)
	case rc.IsPost() && f.claims.Kind == tracking.Unsubscribe:
		a.trackPost(rc, f, pageUnsubscribed, a.unsubscribe)
	case rc.IsPost() && f.claims.Kind == tracking.Confirm:
		a.trackPost(rc, f, pageConfirmed, a.confirm)
	default:
		allow := "GET, HEAD"
		if f.claims.Kind == tracking.Unsubscribe || f.claims.Kind == tracking.Confirm {
			allow += ", POST"
		}
		rc.Response.Header.Set(fasthttp.HeaderAllow, allow)
		writePage(rc, pageMethod)
	}
}

// guard answers a request whose handler panics.
func (a *API) guard(rc *fasthttp.RequestCtx) {
	if r := recover(); r != nil {
		panics.Report(a.opts.Metrics, a.opts.Logger, "tracking", r)
		writePage(rc, pageFault)
	}
}

// fail answers a request that could not be carried out. What is not just too much to do is
// logged.
func (a *API) fail(rc *fasthttp.RequestCtx, err error) {
	if p, ours := handler.Classify(err); ours || p.Status < http.StatusInternalServerError {
		a.opts.Logger.Error("tracking failed", "error", err)
	}
	writePage(rc, pageFault)
}

// follow finds what a token is about. Whatever is wrong with it, the error is
// errNoLink.
func (a *API) follow(token string) (*followed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	claims, fault := a.Claims(ctx, token)
	if fault != nil {
		return nil, fault
	}
	f := &followed{claims: claims}
	err := a.opts.Node.Read(ctx, claims.Account, func(v *resolver.View) (err error) {
		var ok bool
		if f.sent, ok = v.Sent(messages.ID(claims.Send)); !ok {
			return errNoLink
		}
		if !v.Profiles().Has(f.sent.Profile) {
			return errNoLink // the person was erased
		}
		if claims.Kind == tracking.Click && claims.URL == "" && f.sent.Campaign != "" {
			links, err := v.Campaigns().Links(f.sent.Campaign)
			if err != nil {
				return err
			}
			if n := f.sent.Variant; n >= 0 && n < len(links) {
				f.links = links[n]
			}
		}
		if claims.Kind == tracking.Click && f.link() == "" {
			return errNoLink
		}
		if f.profile, err = v.Profiles().Get(f.sent.Profile); err != nil || claims.Kind != tracking.Confirm {
			return err
		}
		if claims.Flow == "" {
			f.confirms(v)
			return nil
		}
		return f.leaves(v)
	})
	return f, err
}

// confirms finds the address at which a link confirms a subscription. One that an older build
// sent does not name it, and is good for a profile that never had another.
func (f *followed) confirms(v *resolver.View) {
	newest, emails := v.Profiles().EmailHash(f.profile.Newest(resolver.IdentityEmail)), 0
	for _, id := range f.profile.Identities {
		if id.Kind == resolver.IdentityEmail {
			emails++
		}
	}
	if f.address = f.claims.Step; f.address == "" && emails == 1 {
		f.address = newest
	}
	f.moved = f.address == "" || f.address != newest
}

// leaves finds out whether the person has unsubscribed since the submission of a form that
// was confirmed.
func (f *followed) leaves(v *resolver.View) error {
	taken, err := v.Forms().TakenMs(f.profile.Ordinal, f.claims.Flow)
	c := f.profile.Consent(f.sent.Channel)
	f.left = taken > 0 && c.Status == "unsubscribed" && c.SinceMs >= taken
	return err
}

// Claims reads a token with the key of the account it names.
func (a *API) Claims(ctx context.Context, token string) (tracking.Claims, error) {
	var fault error
	c, err := tracking.Parse(token, func(account uint64) (key tracking.Key, ok bool) {
		err := a.opts.Node.Read(ctx, account, func(v *resolver.View) (err error) {
			key, err = compose.AccountKey(v, account)
			return err
		})
		if err != nil && !errors.Is(err, resolver.ErrNoAccount) {
			fault = err
		}
		return key, err == nil
	})
	switch {
	case fault != nil:
		return c, fault
	case err != nil:
		return c, errNoLink
	}
	return c, nil
}

// trackGet answers GET, and HEAD, which counts nothing.
func (a *API) trackGet(rc *fasthttp.RequestCtx, f *followed) {
	switch f.claims.Kind {
	case tracking.Open:
		a.engage(rc, f, messages.EngagementOpen)
		noStore(rc)
		rc.SetContentType(tracking.PixelType)
		rc.SetBody(tracking.Pixel())
	case tracking.Click:
		to, err := f.location()
		if err != nil {
			writePage(rc, pageNoLink)
			return
		}
		a.engage(rc, f, messages.EngagementClick)
		noStore(rc)
		rc.SetStatusCode(http.StatusFound)
		rc.Response.Header.Set(fasthttp.HeaderLocation, to)
	case tracking.Unsubscribe:
		writePage(rc, pageUnsubscribe)
	case tracking.Confirm:
		switch {
		case f.moved:
			writePage(rc, pageMoved)
		case f.left:
			writePage(rc, pageLeft)
		default:
			writePage(rc, pageConfirm)
		}
	}
}

// engage records an open or a click.
func (a *API) engage(rc *fasthttp.RequestCtx, f *followed, kind string) {
	if rc.IsHead() {
		return
	}
	if !a.tracker.allow(&f.claims) {
		a.tracker.limited.Inc()
		return
	}
	r := messages.EngagementRecord{
		Send: messages.ID(f.claims.Send), Profile: f.profile.ID.String(), Channel: f.sent.Channel, Kind: kind, Link: int(f.claims.Link),
		Agent: tracking.JudgeAgent(string(rc.UserAgent())).String(), Flow: f.claims.Flow, Step: f.claims.Step,
	}
	if kind == messages.EngagementClick {
		r.URL = f.link()
	}
	a.tracker.note(engagementWork{f.claims.Account, r})
}

// trackPost carries out what a form or a mail program asks for, and answers once
// it is on record.
func (a *API) trackPost(rc *fasthttp.RequestCtx, f *followed, done webPage, do func(ctx context.Context, f *followed, oneClick bool) error) {
	body, err := ingest.ReadBody(rc, a.opts.Memory, maxFormBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		writePage(rc, pageTooLarge)
		return
	case errors.Is(err, ingest.ErrNoMemory):
		writePage(rc, pageFault)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	switch err := do(ctx, f, strings.Contains(string(body), "One-Click")); {
	case errors.Is(err, errTooLate):
		writePage(rc, pageTooLate)
		return
	case errors.Is(err, errMoved):
		writePage(rc, pageMoved)
		return
	case errors.Is(err, errLeft):
		writePage(rc, pageLeft)
		return
	case err != nil:
		a.fail(rc, err)
		return
	}
	writePage(rc, done)
}

// unsubscribe withdraws the consent of the message's channel. A repeat changes
// nothing.
func (a *API) unsubscribe(ctx context.Context, f *followed, oneClick bool) error {
	channel := compose.UnsubscribeChannel(&f.claims, f.sent)
	if f.profile.Consent(channel).Status == "unsubscribed" {
		return nil
	}
	source := "link"
	if oneClick {
		source = "one-click"
	}
	_, err := a.opts.Node.Command(ctx, f.claims.Account, messages.CommandEngagement, messages.EngagementRecord{
		Send: messages.ID(f.claims.Send), Profile: f.profile.ID.String(), Channel: channel, Kind: messages.EngagementUnsubscribed, Source: source,
		Flow: f.claims.Flow, Step: f.claims.Step,
	})
	return err
}

// confirm ends a double opt-in.
func (a *API) confirm(ctx context.Context, f *followed, _ bool) error {
	if f.left {
		return errLeft
	}
	if f.claims.Flow != "" { // of a form, see compose.Links.ConfirmURL
		_, err := a.opts.Node.Command(ctx, f.claims.Account, forms.CommandConfirm, forms.Confirm{Profile: f.profile.ID.String(), Submission: f.claims.Flow})
		var refusal *resolver.Refusal
		if errors.As(err, &refusal) && refusal.Code == "not_found" {
			return errTooLate
		}
		return err
	}
	if f.moved {
		return errMoved
	}
	if f.profile.Consent(f.sent.Channel).Status == "subscribed" && !f.profile.Pending(f.sent.Channel) {
		return nil
	}
	_, err := a.opts.Node.Command(ctx, f.claims.Account, contacts.CommandConsentSet, contacts.ConsentSet{
		ID: f.profile.ID.String(), Channel: f.sent.Channel, Status: "subscribed", Source: "confirmation", Confirm: true, Address: f.address,
	})
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) && refusal.Field == "address" {
		return errMoved
	}
	return err
}
