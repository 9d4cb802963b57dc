package links

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/clientaddr"
	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/view"
)

// The fields of the form of the preference page. shown has each choice that the page had, was
// those that were ticked then, and chosen those that are ticked now: what the person did not
// touch is left alone, whatever it has become since. page names the content of the page, so
// that recipients agree only to what they have read.
const (
	fieldAction = "action"
	fieldPage   = "page"
	fieldShown  = "shown"
	fieldWas    = "was"
	fieldChosen = "chosen"

	actionSave       = "save"
	actionEverything = "everything"

	ofChannel = "channel:"
	ofTopic   = "topic:"
)

// unsubscribeAll is what the button says that withdraws every consent.
const unsubscribeAll = "Unsubscribe from everything"

// channelNames are the channels as people read them, in the order of the page.
var channelNames = [...]struct{ channel, name string }{
	{"email", "E-mail"}, {"sms", "SMS"}, {"whatsapp", "WhatsApp"}, {"push", "Push notifications"}, {"im", "Instant messages"}, {"in_app", "Messages in the app"},
}

// choice is a line of the preference page.
type choice struct {
	Value             string // in the form
	Name, Description string
	On                bool
	// Note says what else keeps messages from being sent, "" for nothing.
	Note string
}

// preferences is the preference page of a person.
type preferences struct {
	Company, Title, Text string
	Topics, Channels     []choice
	// Saved says that the page answers a form, Changed what that changed, and Outdated that the
	// form was of a page that said something else, so that nothing was saved.
	Saved, Outdated bool
	Changed         []string
	// unsaid are the channels without a line, which "unsubscribe from everything" is about too.
	unsaid []string
}

func preferenceOperations() []operation.Operation {
	page := func(status, about string) shape.Member {
		var headers shape.Ordered
		if status == "429" || status == "503" {
			headers = shape.Ordered{operation.RetryAfter}
		}
		return shape.Pair(status, operation.Plain(about, "text/html", "", headers))
	}
	faults := shape.Ordered{page("404", "No link of ours."), page("410", "The person was erased."), page("503", "Not just now.")}
	return []operation.Operation{
		{Method: "GET", Path: "/preferences/{token}", ID: "preferencePage", Summary: "Show the preference page",
			About: "The topics (lists that are public) and channels of one person, in a form without scripts. `{{preferences_url}}` in a message is the recipient's link to it.",
			Other: append(shape.Ordered{page("200", "The page.")}, faults...)},
		{Method: "POST", Path: "/preferences/{token}", ID: "savePreferences", Summary: "Save the choices of the preference page",
			About: "The form of the page. What was not shown stays as it is, and a repeat changes nothing. The log of consents has each change with its evidence.",
			Body: shape.Object(
				shape.Req(fieldAction, shape.Word("`save`, or `everything` to unsubscribe from all channels and topics.", actionSave, actionEverything)),
				shape.Opt(fieldPage, shape.Text("3f2a9c0d1e4b5a67", "What the page said, as its form has it. With `save`, another one is answered by the page as it is now.")),
				shape.Opt(fieldWas, shape.List(shape.Text(ofChannel+"email", "A choice that was ticked when the page was shown. One that is as it was shown stays as it is."), "")),
				shape.Opt(fieldShown, shape.List(shape.Text(ofChannel+"email", "A choice that the page had: `channel:` and its name, or `topic:` and the id of the list."), "")),
				shape.Opt(fieldChosen, shape.List(shape.Text(ofChannel+"email", "One of them that is ticked."), "")),
			), BodyRules: operation.BodyRules{Media: "application/x-www-form-urlencoded"},
			Other: append(shape.Ordered{page("200", "Saved: the page as it is now, with what was changed."), page("400", "This is no form of the page."), page("409", "The page says something else by now, and is shown again; or there are too many topics. Nothing was saved."), page("413", "Too much was sent."), page("429", "Too often in a minute.")}, faults...)},
	}
}

// errErased reports that the person of a link was erased.
var errErased = errors.New("the person was erased")

// preferencePage answers GET and POST of the preference page.
func (a *API) preferencePage(rc *fasthttp.RequestCtx) {
	defer a.guard(rc)
	if !rc.IsGet() && !rc.IsHead() && !rc.IsPost() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD, POST")
		writePage(rc, pageMethod)
		return
	}
	token, _ := rc.UserValue("token").(string)
	f, p, err := a.preferencesOf(token)
	if err == nil && rc.IsPost() {
		p, err = a.savePreferences(rc, token, f, p)
	}
	if err != nil {
		a.failPreferences(rc, err)
		return
	}
	writePreferences(rc, p)
}

// The faults of a form.
var (
	errNoForm     = errors.New("not a form of the page")
	errTooMany    = errors.New("too many topics")
	errTooOften   = errors.New("too often")
	errTooLarge   = errors.New("too large")
	errNotJustNow = errors.New("not just now")
)

// failPreferences answers with the page of a fault.
func (a *API) failPreferences(rc *fasthttp.RequestCtx, err error) {
	for _, x := range [...]struct {
		err  error
		page webPage
	}{{errNoLink, pageNoLink}, {errErased, pageErased}, {errNoForm, pageNoForm}, {errTooMany, pageTooManyTopics}, {errTooOften, pageTooOften}, {errTooLarge, pageTooLarge}, {errNotJustNow, pageFault}} {
		if errors.Is(err, x.err) {
			writePage(rc, x.page)
			return
		}
	}
	a.fail(rc, err)
}

// preferencesOf reads what the page of a link shows.
func (a *API) preferencesOf(token string) (*followed, *preferences, error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	claims, err := a.Claims(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	if claims.Kind != tracking.Preferences {
		return nil, nil, errNoLink
	}
	f := &followed{claims: claims}
	var page *preferences
	err = a.opts.Node.Read(ctx, claims.Account, func(v *resolver.View) (err error) {
		var ok bool
		switch f.sent, ok = v.Sent(messages.ID(claims.Send)); {
		case !ok:
			return errNoLink
		case !v.Profiles().Has(f.sent.Profile):
			return errErased
		}
		if f.profile, err = v.Profiles().Get(f.sent.Profile); err == nil {
			page = newPreferences(v, f.profile)
		}
		return err
	})
	return f, page, err
}

func newPreferences(v *resolver.View, p *view.Profile) *preferences {
	s := v.Settings()
	out := &preferences{Company: v.Company().Name, Title: "Your preferences", Text: "Choose what you want to hear about, and how."}
	if x := s.PreferencePage; x != nil {
		out.Title, out.Text = cmp.Or(x.Title, out.Title), cmp.Or(x.Text, out.Text)
	}
	for _, l := range v.Contacts().Topics() {
		out.Topics = append(out.Topics, choice{Value: ofTopic + l.ID, Name: l.PublicName, Description: l.PublicDescription, On: slices.Contains(p.Lists, l.ID)})
	}
	phone := p.Newest(resolver.IdentityPhone) != ""
	email := p.Newest(resolver.IdentityEmail) != ""
	inApp := len(v.InApp().Settings().Secrets) > 0 && (email || p.Newest(resolver.IdentityExternalID) != "")
	reached := map[string]bool{"in_app": inApp, "email": email, "sms": phone, "whatsapp": phone, "push": len(p.Devices) > 0}
	for _, x := range channelNames {
		c := p.Consent(x.channel)
		said := c.Status == statusSubscribed || c.Status == statusUnsubscribed
		if !said && !reached[x.channel] {
			out.unsaid = append(out.unsaid, x.channel)
			continue
		}
		line := choice{Value: ofChannel + x.channel, Name: x.name, On: c.Status == statusSubscribed || !said && !reach.TakesSubscription(x.channel, s.RequireOptIn)}
		switch p.SuppressionReason(x.channel) {
		case "":
		case "pending":
			line.Note = "Please confirm by the link in the message that we sent you."
		default:
			line.Note = "We send you nothing this way at present, whatever you choose here."
		}
		out.Channels = append(out.Channels, line)
	}
	return out
}

const (
	statusSubscribed   = "subscribed"
	statusUnsubscribed = "unsubscribed"
)

// savePreferences carries out what a form asks for, and returns the page as it is then.
func (a *API) savePreferences(rc *fasthttp.RequestCtx, token string, f *followed, p *preferences) (*preferences, error) {
	if !a.tracker.allow(&f.claims) {
		a.tracker.limited.Inc()
		return nil, errTooOften
	}
	body, err := ingest.ReadBody(rc, a.opts.Memory, maxFormBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, errTooLarge
	case err != nil:
		return nil, errNotJustNow
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errNoForm
	}
	c := messages.Preferences{Send: messages.ID(f.claims.Send), Profile: f.profile.ID.String(), Flow: f.claims.Flow, Step: f.claims.Step}
	if addr, ok := netip.AddrFromSlice(rc.RemoteIP()); ok {
		c.Client = clientaddr.Network(addr)
	}
	switch form.Get(fieldAction) {
	case actionSave:
		if form.Get(fieldPage) != p.Says() {
			p.Outdated = true
			return p, nil
		}
		p.choose(&c, form[fieldShown], form[fieldWas], form[fieldChosen])
	case actionEverything:
		p.refuseAll(&c)
	default:
		return nil, errNoForm
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	var changed messages.PreferencesReply
	if len(c.Channels)+len(c.Topics) > 0 {
		reply, err := a.opts.Node.Command(ctx, f.claims.Account, messages.CommandPreferences, c)
		var refusal *resolver.Refusal
		switch {
		case errors.As(err, &refusal) && refusal.Code == "limit":
			return nil, errTooMany
		case err != nil:
			return nil, err
		}
		if err := handler.Decode(reply, &changed); err != nil {
			return nil, err
		}
	}
	_, now, err := a.preferencesOf(token)
	if err != nil {
		return nil, err
	}
	now.Saved = true
	for _, list := range [...][]choice{now.Topics, now.Channels} {
		for _, x := range list {
			if kind, id, _ := strings.Cut(x.Value, ":"); kind+":" == ofTopic && slices.Contains(changed.Topics, id) || kind+":" == ofChannel && slices.Contains(changed.Channels, id) {
				now.Changed = append(now.Changed, x.Name+": "+map[bool]string{true: "on", false: "off"}[x.On])
			}
		}
	}
	return now, nil
}

// Says tells pages with other words apart.
func (p *preferences) Says() string {
	h := sha256.New()
	for _, text := range []string{p.Company, p.Title, p.Text} {
		fmt.Fprintf(h, "%q", text)
	}
	for _, list := range [...][]choice{p.Topics, p.Channels} {
		for _, x := range list {
			fmt.Fprintf(h, "%q%q%q", x.Value, x.Name, x.Description)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// choose takes over the choices that the person changed, and that are not so already.
func (p *preferences) choose(c *messages.Preferences, shown, was, chosen []string) {
	differs := func(x choice) (on, differs bool) {
		on = slices.Contains(chosen, x.Value)
		return on, slices.Contains(shown, x.Value) && on != slices.Contains(was, x.Value) && on != x.On
	}
	for _, x := range p.Topics {
		if on, ok := differs(x); ok {
			c.Topics = append(c.Topics, messages.TopicChoice{ListID: strings.TrimPrefix(x.Value, ofTopic), Joins: on, Wording: p.wording(x.Name, x.Description)})
		}
	}
	for _, x := range p.Channels {
		if on, ok := differs(x); ok {
			status := statusUnsubscribed
			if on {
				status = statusSubscribed
			}
			c.Channels = append(c.Channels, messages.ChannelChoice{Channel: strings.TrimPrefix(x.Value, ofChannel), Status: status, Wording: p.wording(x.Name, "")})
		}
	}
}

// refuseAll withdraws every consent, also of channels by which the person cannot be reached
// yet, and leaves every topic.
func (p *preferences) refuseAll(c *messages.Preferences) {
	wording := p.wording(unsubscribeAll, "")
	for _, x := range p.Topics {
		c.Topics = append(c.Topics, messages.TopicChoice{ListID: strings.TrimPrefix(x.Value, ofTopic), Wording: wording})
	}
	for _, x := range p.Channels {
		c.Channels = append(c.Channels, messages.ChannelChoice{Channel: strings.TrimPrefix(x.Value, ofChannel), Status: statusUnsubscribed, Wording: wording})
	}
	for _, channel := range p.unsaid {
		c.Channels = append(c.Channels, messages.ChannelChoice{Channel: channel, Status: statusUnsubscribed, Wording: wording})
	}
}

// wording is what a person read beside a choice, for the evidence: the choice first, then what
// the page says, as far as there is room.
func (p *preferences) wording(name, description string) string {
	text := name
	for _, more := range []string{description, p.Title, p.Text} {
		if more != "" {
			text += "\n" + more
		}
	}
	return clip.Valid(text, messages.MaxWordingBytes)
}
