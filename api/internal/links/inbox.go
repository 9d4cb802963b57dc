package links

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/persontoken"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/weborigin"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/inapp"
)

// InAppPath begins the paths of what pages call for in-app messages.
const InAppPath = "/in-app/"

const (
	// How often one person's pages may call in a minute, and all those of an account.
	inboxPerPerson, inboxPerAccount = 120, 60_000
	defaultInboxPage                = 20
)

// inboxCaller is for whom a page asks.
type inboxCaller struct {
	person persontoken.Person
	found  bool   // the person is on file
	id     string // of the profile
	// ordinal is of the profile.
	ordinal uint32
}

var (
	errNoOrigin     = &handler.Problem{Status: http.StatusForbidden, Message: "pages of this origin may not show in-app messages; allow it among the in-app settings of the account"}
	errNoToken      = &handler.Problem{Status: http.StatusUnauthorized, Message: `send the person's token, which your server signs, as "Authorization: Bearer <token>"`}
	errTooManyCalls = &handler.Problem{Status: http.StatusTooManyRequests, Message: "too many calls in a minute", RetryAfter: time.Minute}
)

// inApp answers what pages call for in-app messages, at each path below [InAppPath].
func (a *API) inApp(rc *fasthttp.RequestCtx) {
	defer a.guard(rc)
	noStore(rc)
	path, _ := rc.UserValue("path").(string)
	if path == scriptName {
		a.inAppScript(rc)
		return
	}
	deed, message := "", ""
	if rest, is := strings.CutPrefix(path, "inbox/"); is {
		message, deed, _ = strings.Cut(rest, "/")
	}
	method := http.MethodGet
	switch {
	case path == "inbox", path == "stream":
	case message != "" && slices.Contains(inapp.Deeds, deed):
		method = http.MethodPost
	default:
		handler.WriteProblem(rc, &handler.Problem{Status: http.StatusNotFound, Message: "there is nothing at this path"})
		return
	}
	if rc.IsOptions() {
		preflightInApp(rc)
		return
	}
	if string(rc.Method()) != method {
		rc.Response.Header.Set(fasthttp.HeaderAllow, method+", OPTIONS")
		handler.WriteProblem(rc, &handler.Problem{Status: http.StatusMethodNotAllowed, Message: "this path takes " + method})
		return
	}
	c, err := a.inboxCaller(rc)
	if err == nil {
		switch {
		case deed != "":
			err = a.markMessage(rc, c, message, deed)
		case path == "stream":
			err = a.streamInbox(rc, c)
		default:
			err = a.showInbox(rc, c)
		}
	}
	if err != nil {
		p, ours := handler.Classify(err)
		if ours {
			a.opts.Logger.Error("an in-app call failed", "error", err)
		}
		handler.WriteProblem(rc, p)
		if p.Status == http.StatusUnauthorized {
			rc.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="in-app messages"`)
		}
	}
}

// preflightInApp answers OPTIONS: a browser asks before it sends a token. The question does not
// carry the token, so that the answer cannot depend on the account; the call itself does.
func preflightInApp(rc *fasthttp.RequestCtx) {
	h := &rc.Response.Header
	if origin := rc.Request.Header.Peek(fasthttp.HeaderOrigin); len(origin) > 0 {
		h.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
		h.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, POST, OPTIONS")
		h.Set(fasthttp.HeaderAccessControlAllowHeaders, "authorization, last-event-id")
		h.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
	}
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	rc.SetStatusCode(fasthttp.StatusNoContent)
}

// inboxCaller verifies the token of a call, and finds the person. Pages of origins that are
// allowed can read the answer, also that a token has ended.
func (a *API) inboxCaller(rc *fasthttp.RequestCtx) (c inboxCaller, err error) {
	rc.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	token, isBearer := handler.Bearer(rc.Request.Header.Peek(fasthttp.HeaderAuthorization))
	account, ok := persontoken.Account(token)
	if !isBearer || !ok {
		// Which origins may read the answer only the account knows. This one says nothing.
		rc.Response.Header.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
		return c, errNoToken
	}
	origin := string(rc.Request.Header.Peek(fasthttp.HeaderOrigin))
	now := a.opts.Now()
	err = a.readInApp(account, func(v *resolver.View) error {
		s := v.InApp().Settings()
		allowed := weborigin.Allowed(s.AllowedOrigins, origin)
		if allowed && origin != "" {
			rc.Response.Header.Set(fasthttp.HeaderAccessControlAllowOrigin, origin)
		}
		var err error
		if c.person, err = persontoken.Verify(token, s.Valid(now.UnixMilli()), now); err != nil || !v.Active() {
			if err == nil {
				err = persontoken.ErrSignature
			}
			return &handler.Problem{Status: http.StatusUnauthorized, Message: err.Error()}
		}
		if origin != "" && !allowed {
			return errNoOrigin
		}
		return c.find(v)
	})
	if errors.Is(err, resolver.ErrNoAccount) {
		err = &handler.Problem{Status: http.StatusUnauthorized, Message: persontoken.ErrSignature.Error()}
	}
	if err == nil && !a.formRates.allowPerson(now, resolver.AccountID(account), c.person.Kind+"\x00"+c.person.Subject) {
		err = errTooManyCalls
	}
	return c, err
}

// find looks for the profile of the person. An identifier that a browser's key alone has
// attached to it is none: the key is public, and its users would get the inbox of
// anybody whose address they know.
func (c *inboxCaller) find(v *resolver.View) (err error) {
	kind := resolver.IdentityExternalID
	if c.person.Kind == persontoken.KindEmail {
		kind = resolver.IdentityEmail
	}
	if c.ordinal, c.found, err = v.Profiles().FindProven(kind, c.person.Subject); c.found {
		c.id = v.Profiles().ID(c.ordinal).String()
	}
	return err
}

func (a *API) readInApp(account uint64, fn func(*resolver.View) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	return a.opts.Node.Read(ctx, account, fn)
}

// messages are those of a person that have not ended.
func (a *API) messages(c *inboxCaller) (list []inapp.Message, err error) {
	if !c.found {
		return nil, nil
	}
	err = a.readInApp(c.person.Account, func(v *resolver.View) error {
		o := v.Profiles().Root(c.ordinal)
		unreachable, err := unreachableInApp(v, o)
		if err == nil && !unreachable {
			list, err = v.InApp().Inbox(o, a.inAppTime(v))
		}
		return err
	})
	return list, err
}

// unreachableInApp reports whether a profile gets no in-app messages: it is suppressed on their
// channel, or unsubscribed from it. Those that are in its inbox are then not shown either.
func unreachableInApp(v *resolver.View, ordinal uint32) (bool, error) {
	reason, err := v.Reach().WhyUnreachable(ordinal, "in_app")
	return reason != "", err
}

// inAppTime is the instant at which messages are looked at, in Unix ms.
func (a *API) inAppTime(v *resolver.View) int64 {
	return max(a.opts.Now().UnixMilli(), v.LogTimeMs())
}

// shown leaves out the messages that the person put away.
func shown(list []inapp.Message) []inapp.Message {
	return slices.DeleteFunc(list, func(m inapp.Message) bool { return m.DismissedMs != 0 })
}

func unseen(list []inapp.Message) (n int) {
	for i := range list {
		if list[i].SeenMs == 0 {
			n++
		}
	}
	return n
}

type inboxPage struct {
	Messages []record.InAppMessage `json:"messages"`
	Unseen   int                   `json:"unseen"`
	Next     *string               `json:"next"`
}

// showInbox answers GET /in-app/inbox.
func (a *API) showInbox(rc *fasthttp.RequestCtx, c inboxCaller) error {
	limit := defaultInboxPage
	if text := string(rc.QueryArgs().Peek("limit")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > inapp.MaxMessages {
			return handler.BadField("limit", "limit must be from 1 to %d", inapp.MaxMessages)
		}
		limit = n
	}
	list, err := a.messages(&c)
	if err != nil {
		return err
	}
	list = shown(list)
	out := inboxPage{Messages: []record.InAppMessage{}, Unseen: unseen(list)}
	if text := string(rc.QueryArgs().Peek("cursor")); text != "" {
		after, ok := parseInboxCursor(text)
		if !ok {
			return handler.BadField("cursor", "cursor must be the next of an earlier page")
		}
		list = slices.DeleteFunc(list, func(m inapp.Message) bool { return inapp.First(m, after) <= 0 })
	}
	for i := range list[:min(limit, len(list))] {
		out.Messages = append(out.Messages, record.NewInAppMessage(&list[i]))
	}
	if len(list) > limit {
		next := inboxCursor(&list[limit-1])
		out.Next = &next
	}
	writeInApp(rc, out)
	return nil
}

// inboxCursor names a message by its place: those behind it are found also when it has gone.
func inboxCursor(m *inapp.Message) string {
	return strconv.Itoa(m.Priority) + "." + strconv.FormatInt(m.CreatedMs, 10) + "." + m.ID
}

func parseInboxCursor(text string) (m inapp.Message, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(parts[2]) > 64 {
		return m, false
	}
	var errs [2]error
	m.Priority, errs[0] = strconv.Atoi(parts[0])
	m.CreatedMs, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	m.ID = parts[2]
	return m, errors.Join(errs[:]...) == nil
}

func writeInApp(rc *fasthttp.RequestCtx, data any) {
	rc.SetContentType("application/json")
	rc.SetBody(must.PlainJSON(data))
}

// markMessage answers POST /in-app/inbox/{id}/{deed}.
func (a *API) markMessage(rc *fasthttp.RequestCtx, c inboxCaller, message, deed string) error {
	list, err := a.messages(&c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(m inapp.Message) bool { return m.ID == message })
	if i < 0 {
		return handler.NotFound("there is no message with this id; it may have ended")
	}
	if list[i].Did(deed) {
		writeInApp(rc, struct{}{}) // a repeat needs no record
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.ReadTimeout)
	defer cancel()
	if _, err := a.opts.Node.Command(ctx, c.person.Account, inapp.CommandMark, inapp.MarkDeed{Profile: c.id, Message: message, Deed: deed}); err != nil {
		return err
	}
	writeInApp(rc, struct{}{})
	return nil
}
