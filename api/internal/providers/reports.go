package providers

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// ReportPath is where providers report outcomes of messages: behind it stand
// the account's id and the provider's name.
const ReportPath = "/inbound/"

const (
	// inboundTimeout bounds one report; providers wait about as long.
	inboundTimeout = 30 * time.Second
	// inboundWorkers is how many events of a report are recorded at once.
	inboundWorkers = 16
	inboundChunk   = 200 // events that are looked up in one view
)

// Reports are what providers and mail servers call.
func (a *API) Reports() handler.Group {
	result := shape.Named("InboundResult", shape.Object(
		shape.Req("events", shape.Count(2, "Events in the report.")),
		shape.Req("recorded", shape.Count(2, "Those that concern a message or contact of the account; the same again changes nothing.")),
		shape.Req("ignored", shape.Count(0, "")),
	))
	envelope := operation.Envelope(result)
	answers := shape.Pairs("200", operation.Response("Taken. The message says so when nothing in it was understood. Twilio is answered an empty document of its markup (`text/xml`) instead, with the figures in a comment.", envelope, nil))
	for _, p := range operation.Problems {
		switch p.Status {
		case "400", "401", "413", "415", "500", "503":
			message, about := p.Message, p.About
			if p.Status == "401" {
				message, about = "the request is not authenticated: set the provider's keys with PUT /console/api/v1/inbound-providers/{provider}, and call the address that it answers", "Who calls does not prove who they are; the answer is the same for all cases."
			}
			var headers shape.Ordered
			if p.Status == "503" {
				headers = shape.Ordered{operation.RetryAfter}
			}
			answers = append(answers, shape.Pair(p.Status, operation.Response(about, operation.FailureConsole, headers, shape.Pair("answer", operation.FailureSample(message)))))
		}
	}
	report := shape.OneOf(shape.List(inboundEventShape, "").Entries(0, 10000), inboundEventShape).Says("generic: events, signed as Standard Webhooks with one of the secrets. Other providers send their own forms. At most 1 MiB.")
	return handler.Group{Group: operation.Group{Surface: operation.SurfacePublic, Tag: "Reports of providers", Title: "Reports of providers",
		About: "Bounces, complaints, deliveries, opens, clicks and unsubscribes, from who delivers messages, and texts that people write. Each provider proves itself in its own way; the console sets the keys."}, Routes: []handler.Route{
		{Handle: a.inboundChallenge, Operation: inboundChallengeOperation(answers[1:])},
		{Handle: a.inbound, Operation: operation.Operation{Method: "POST", Path: ReportPath + "{account}/{provider}", Permission: operation.Anybody, Raw: true, ID: "inboundReport", Summary: "Receive delivery reports", Body: report, Data: result, Other: answers,
			Query: []operation.Parameter{operation.Query("secret", shape.Text("a-long-enough-secret", "postmark, ses: the secret, where they do not sign."))},
			Header: []operation.Parameter{operation.Query("webhook-id", shape.Text("msg_1", "generic: id of the report.")), operation.Query("webhook-timestamp", shape.Text("1769850000", "generic: when it was signed, in Unix seconds.")),
				operation.Query("webhook-signature", shape.Text("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", "generic: the signature."))}}},
		{Handle: a.inbound, Operation: operation.Operation{Method: "POST", Path: ReportPath + "{account}/mail/{token}", Permission: operation.Anybody, Raw: true, ID: "inboundMail", Summary: "Receive a bounce or complaint as mail", About: "For mail servers: a DSN, an ARF report or an unsubscribe mail, as it came. The provider `mail` with the token in `Authorization` does the same.",
			Body: shape.Text("From: MAILER-DAEMON@example.com\r\n\r\n…", "The mail, of at most 1 MiB."), BodyRules: operation.BodyRules{Media: "message/rfc822"}, Data: result, Other: answers}},
	}}
}

// The one answer to requests that are not authenticated, whatever is wrong.
var errNotProvider = &handler.Problem{Status: http.StatusUnauthorized,
	Message: "the request is not authenticated: set the provider's keys with PUT " + operation.SurfaceConsole.Prefix + "/inbound-providers/{provider}, and call the address that it answers"}

// InboundResult is the answer to a report.
type InboundResult struct {
	Events int `json:"events"`
	// Recorded are those that concern a message or contact of the account. The
	// same event again counts here, too, and changes nothing.
	Recorded int `json:"recorded"`
	Ignored  int `json:"ignored"`
}

// source is the sender of a report.
type source struct {
	account uint64
	name    string
	key     tracking.Key
	config  inboundConfig
}

// inbound answers POST /inbound/{account}/{provider}.
func (a *API) inbound(c *handler.Call) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), inboundTimeout)
	defer cancel()
	s, err := a.source(ctx, c)
	if err != nil {
		return nil, err
	}
	if s.name == "mail" && !s.letsIn(c) {
		return nil, errNotProvider
	}
	if coding := c.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return nil, &handler.Problem{Status: http.StatusUnsupportedMediaType, Message: "Content-Encoding is not understood here; send the body as it is"}
	}
	body, err := handler.ReadBody(c.RequestCtx, a.opts.Memory, inbound.MaxBytes)
	if err != nil {
		return nil, err
	}
	batch, err := a.readInbound(ctx, c, s, body)
	if errors.Is(err, inbound.ErrNotRecognised) {
		// Mail of another kind: its server must not send it again.
		return handler.Note{Data: InboundResult{}, Message: err.Error()}, nil
	}
	if err != nil {
		return nil, inboundProblem(err)
	}
	result, err := a.recordInbound(ctx, s, batch.Events)
	if err == nil && batch.WithoutNumber > 0 {
		a.dropped(s, batch.WithoutNumber)
		result.Events, result.Ignored = result.Events+batch.WithoutNumber, result.Ignored+batch.WithoutNumber
	}
	switch {
	case err != nil:
		return nil, err
	case s.name == "twilio":
		return answerTwilio(c, result)
	}
	return result, nil
}

// answerTwilio answers with an empty document of Twilio's markup, which Twilio needs: it reports
// any other content type to the customer as an error (12300). Answers to keywords are messages of
// their own. The document has the figures in a comment.
func answerTwilio(c *handler.Call, r InboundResult) (any, error) {
	c.SetContentType("text/xml; charset=utf-8")
	c.Response.Header.Set("X-Content-Type-Options", "nosniff")
	fmt.Fprintf(c, `<?xml version="1.0" encoding="UTF-8"?><Response><!-- events %d, recorded %d, ignored %d --></Response>`, r.Events, r.Recorded, r.Ignored)
	return handler.Streaming, nil
}

// inboundProblem answers as the readers' errors demand. A request that is not
// authenticated always gets the same answer.
func inboundProblem(err error) error {
	switch {
	case errors.Is(err, inbound.ErrUnauthorised):
		return errNotProvider
	case errors.Is(err, inbound.ErrTooLarge):
		return &handler.Problem{Status: http.StatusRequestEntityTooLarge, Message: err.Error()}
	case errors.Is(err, inbound.ErrMalformed):
		return &handler.Problem{Status: http.StatusBadRequest, Message: err.Error()}
	case errors.Is(err, inbound.ErrUnavailable):
		return &handler.Problem{Status: http.StatusServiceUnavailable, Message: "the report cannot be checked at the moment; send it again", RetryAfter: 30 * time.Second}
	}
	return err
}

// source finds the provider that a path names.
func (a *API) source(ctx context.Context, c *handler.Call) (*source, error) {
	s := &source{name: "mail"}
	if name := c.Param("provider"); name != "" {
		s.name = name
	}
	account, ok := ParseAccountID(c.Param("account"))
	if !ok {
		return nil, errNotProvider
	}
	s.account = account
	err := a.opts.Node.Read(ctx, account, func(v *resolver.View) (err error) {
		x, ok := v.Credentials().Get(credentials.Inbound, s.name)
		if !ok {
			return errNotProvider
		}
		if err = json.Unmarshal(x.Config, &s.config); err == nil {
			s.key, err = compose.AccountKey(v, account)
		}
		return err
	})
	if errors.Is(err, resolver.ErrNoAccount) {
		err = errNotProvider
	}
	return s, err
}

// keyOf makes repeats of an event harmless. Providers write numbers into the ids of texts, and
// keys stay in the log when a person is erased, so that it has a keyed hash of such an id.
func (s *source) keyOf(e *inbound.Event) string {
	if e.Channel == "" {
		return s.name + "/" + e.ID
	}
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte("inbound\x00"))
	h.Write([]byte(e.ID))
	return s.name + "/" + hex.EncodeToString(h.Sum(nil))
}

// letsIn reports whether who hands over mail has the token: in the path, or in the
// header Authorization.
func (s *source) letsIn(c *handler.Call) bool {
	token, ok := c.Param("token"), false
	if token == "" {
		if token, ok = handler.Bearer(c.Request.Header.Peek(fasthttp.HeaderAuthorization)); !ok {
			token = basicPassword(string(c.Request.Header.Peek(fasthttp.HeaderAuthorization)))
		}
	}
	return equal(s.config.Token, token)
}

// equal compares a secret of ours in constant time. One that is too short never matches.
func equal(secret, given string) bool {
	want, have := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1 && len(secret) >= minInboundSecret
}

func basicPassword(header string) string {
	scheme, text, _ := strings.Cut(header, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || !strings.EqualFold(scheme, "basic") {
		return ""
	}
	_, password, _ := strings.Cut(string(raw), ":")
	return password
}

// readInbound authenticates a report and reads its events.
func (a *API) readInbound(ctx context.Context, c *handler.Call, s *source, body []byte) (inbound.Batch, error) {
	if s.name == "mail" {
		events, err := inbound.ParseMail(body, inbound.MailOptions{})
		return inbound.Batch{Events: events}, err
	}
	p, err := a.inboundProvider(s.name, &s.config)
	if err != nil {
		return inbound.Batch{}, err
	}
	batch, err := p.Parse(ctx, a.opts.Now(), inbound.Request{
		Header: func(name string) string { return string(c.Request.Header.Peek(name)) },
		Body:   body, Secret: string(c.QueryArgs().Peek("secret")), URL: a.opts.PublicURL + string(c.RequestURI()),
	})
	if err == nil && batch.ConfirmURL != "" {
		err = a.opts.SNS.Confirm(ctx, batch.ConfirmURL)
	}
	return batch, err
}

// dropped counts texts of people whose number the provider does not tell, and says so once a
// minute: a STOP among them has had no effect here.
func (a *API) dropped(s *source, n int) {
	a.withoutNumber.Add(n)
	now := a.opts.Now().Unix()
	if last := a.warned.Load(); now-last >= 60 && a.warned.CompareAndSwap(last, now) {
		a.opts.Logger.Warn("texts of people who hide their number were dropped: without it nobody can be found, no event is recorded and no keyword counts", "account", resolver.AccountID(s.account), "provider", s.name, "texts", n)
	}
}

// recordInbound records what concerns messages and contacts of the account. It
// may be repeated: an event that is on record changes nothing.
func (a *API) recordInbound(ctx context.Context, s *source, events []inbound.Event) (out InboundResult, err error) {
	out.Events = len(events)
	replies, events := withoutReplies(events)
	written, err := a.recordReplies(ctx, s, replies)
	if err != nil {
		return out, err
	}
	var records []messages.EngagementRecord
	for part := range slices.Chunk(events, inboundChunk) {
		tokens := a.claimsOfTokens(ctx, s, part)
		err := a.opts.Node.Read(ctx, s.account, func(v *resolver.View) error {
			for i := range part {
				r, ok, err := s.record(v, &part[i], tokens[part[i].Token])
				if err != nil {
					return err
				}
				if ok {
					records = append(records, r)
				}
			}
			return nil
		})
		if err != nil {
			return out, err
		}
	}
	recorded, err := a.sendRecords(ctx, s.account, records)
	if err != nil {
		return out, err
	}
	out.Recorded = written + recorded
	out.Ignored = out.Events - out.Recorded
	return out, nil
}

// claimsOfTokens are the claims of unsubscribe tokens in mail.
func (a *API) claimsOfTokens(ctx context.Context, s *source, events []inbound.Event) map[string]tracking.Claims {
	out := map[string]tracking.Claims{}
	for i := range events {
		t := events[i].Token
		if t == "" {
			continue
		}
		if c, err := a.opts.Claims(ctx, t); err == nil && c.Kind == tracking.Unsubscribe && c.Account == s.account {
			out[t] = c
		}
	}
	return out
}

// sendRecords puts records on record, several at once. What the state refuses is
// left out of the count.
func (a *API) sendRecords(ctx context.Context, account uint64, list []messages.EngagementRecord) (recorded int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Int64
	work := make(chan messages.EngagementRecord)
	var workers sync.WaitGroup
	for range min(inboundWorkers, len(list)) {
		workers.Go(func() {
			for r := range work {
				_, err := a.opts.Node.Command(ctx, account, messages.CommandEngagement, r)
				var refusal *resolver.Refusal
				switch {
				case err == nil:
					done.Add(1)
				case !errors.As(err, &refusal):
					cancel(err)
				}
			}
		})
	}
	for _, r := range list {
		select {
		case work <- r:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	workers.Wait()
	return int(done.Load()), context.Cause(ctx)
}

// isTest reports whether an event is about a test of a campaign, which counts for nothing.
func isTest(e *inbound.Event, account uint64) bool {
	_, send, ok := compose.ParseAddressID(e.SendID, account)
	if !ok {
		_, send, ok = compose.ParseMessageID(e.MessageID)
	}
	return ok && send.IsTest()
}

// record is what an event says of the account, if it says something of it.
func (s *source) record(v *resolver.View, e *inbound.Event, token tracking.Claims) (r messages.EngagementRecord, ok bool, err error) {
	if isTest(e, s.account) {
		return r, false, nil
	}
	sent, send, found := s.message(v, e, messages.ID(token.Send))
	r = messages.EngagementRecord{Send: send, Channel: "email", Link: -1, URL: e.URL, Reason: e.Reason, Source: s.name, Key: s.keyOf(e)}
	switch {
	case found:
		r.Channel, r.Profile = sent.Channel, v.Profiles().ID(sent.Profile).String()
		if e.Channel != "" && !sent.OfCampaign {
			r.Channel = e.Channel // ids of single messages do not say it
		}
		if e.Type == inbound.Click && sent.Campaign != "" {
			links, err := v.Campaigns().Links(sent.Campaign)
			if err != nil {
				return r, false, err
			}
			if n := sent.Variant; n >= 0 && n < len(links) {
				r.Link = slices.Index(links[n], e.URL)
			}
		}
	case s.name == "mail" || e.Channel != "":
		return r, false, nil // anybody can write a mail, and a number may send for others as well
	default:
		o, known := v.Profiles().Find(resolver.IdentityEmail, e.Recipient)
		if !known {
			return r, false, nil
		}
		r.Profile = v.Profiles().ID(o).String()
	}
	switch e.Type {
	case inbound.Bounce:
		r.Kind = messages.EngagementSoftBounce
		if e.Hard {
			r.Kind = messages.EngagementBounce
		}
	case inbound.Failure:
		r.Kind, r.Hard = messages.EngagementFailed, e.Hard
	case inbound.Complaint:
		r.Kind = messages.EngagementComplaint
	case inbound.Delivery:
		r.Kind = messages.EngagementDelivery
	case inbound.Unsubscribe:
		r.Kind = messages.EngagementUnsubscribed
		if e.Channel != "" {
			r.Source = messaging.SourceProvider
		}
		if found && send == messages.ID(token.Send) {
			r.Channel, r.Flow, r.Step = compose.UnsubscribeChannel(&token, sent), token.Flow, token.Step
		}
	case inbound.Open, inbound.Click:
		r.Kind = messages.EngagementOpen
		if e.Type == inbound.Click {
			r.Kind = messages.EngagementClick
		}
		switch {
		case e.Machine:
			r.Agent = messages.AgentMachine
		case e.UserAgent != "":
			r.Agent = tracking.JudgeAgent(e.UserAgent).String()
		}
	default:
		return r, false, nil
	}
	return r, true, nil
}

// message finds the message an event is about: by its id, by its Message-ID, by a
// token. Ids are sealed, so that who knows one of them knows no other.
func (s *source) message(v *resolver.View, e *inbound.Event, token messages.ID) (sent view.Sent, send messages.ID, ok bool) {
	try := func(account uint64, id messages.ID, is bool) bool {
		if !is || account != s.account || !compose.Sealed(s.key, id) {
			return false
		}
		sent, ok = v.Sent(id)
		send = id
		return ok
	}
	if account, id, is := compose.ParseAddressID(e.SendID, s.account); try(account, id, is) {
		return sent, send, true
	}
	if account, id, is := compose.ParseMessageID(e.MessageID); try(account, id, is) {
		return sent, send, true
	}
	if token != (messages.ID{}) {
		if sent, ok = v.Sent(token); ok {
			return sent, token, true
		}
	}
	return view.Sent{}, messages.ID{}, false
}

// ParseAccountID reads the number of an account out of its id.
func ParseAccountID(id string) (account uint64, ok bool) {
	number, ok := strings.CutPrefix(id, "acc_")
	if !ok {
		return 0, false
	}
	return resolver.ParseAppID([]byte("app_" + number))
}
