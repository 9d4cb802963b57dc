package messaging

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
)

// How long single e-mails are tried: a relay that is down over a night, or a
// password that somebody must put right, loses none.
const (
	mailTries     = 12 * time.Hour
	mailPause     = 15 * time.Second
	mailMaxPause  = 30 * time.Minute
	mailMaxWanted = time.Hour // of what a relay may ask for
)

// The message that asks for a confirmation where the account has no template of
// its own.
var confirmation = resolver.CampaignContent{
	Subject: "Please confirm your subscription",
	HTML: `<!doctype html><html><body><p>Hello {{first_name | default: "there"}},</p>` +
		`<p>please confirm that you want to hear from {{company_name}}:</p>` +
		`<p><a href="{{confirm_url}}">Confirm my subscription</a></p>` +
		`<p>If you did not ask for this, do nothing: you will not hear from us.</p></body></html>`,
	Text: "Hello {{first_name | default: \"there\"}},\n\nplease confirm that you want to hear from {{company_name}}:\n\n{{confirm_url}}\n\n" +
		"If you did not ask for this, do nothing: you will not hear from us.\n",
	SenderName: "{{company_name}}",
}

// errMoot says that there is no reason any more to send a message.
var errMoot = errors.New("no reason any more")

// errState says that the state could not be read.
var errState = errors.New("the state cannot be read")

// errBlocked says that an address must not be sent to any more.
type errBlocked string

func (e errBlocked) Error() string { return "the address is blocked (" + string(e) + ")" }

// mail sends one e-mail and reports what became of it.
func (o *Outbox) mail(account uint64, w *resolver.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, err := o.compose(ctx, account, w)
	var blocked errBlocked
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, resolver.ErrNoAccount):
		_ = o.opts.Sleep(o.ctx, maxPause) // the node says itself why it has failed
		return
	case errors.Is(err, errState):
		o.report(ctx, account, w, o.judgeMail(w, outcome.Failed(outcome.Temporary, "state", err)))
		return
	case errors.Is(err, errMoot):
		o.report(ctx, account, w, resolver.OutboxDone{Result: resolver.ResultMoot})
		return
	case errors.As(err, &blocked):
		o.report(ctx, account, w, resolver.OutboxDone{Result: resolver.ResultRefused, Reason: err.Error()})
		return
	default:
		result := resolver.ResultFailed
		if email.Invalid(err).Hard {
			result = resolver.ResultBounced
		}
		o.counters.failed.Inc()
		o.report(ctx, account, w, resolver.OutboxDone{Result: result, Reason: err.Error()})
		return
	}
	r := o.opts.Mailer.Send(ctx, m)
	if ctx.Err() != nil && !r.OK() {
		return // cut off by the stop: it goes on at the next start
	}
	d := o.judgeMail(w, r)
	switch d.Result {
	case resolver.ResultSent:
		o.counters.sent.Inc()
	case resolver.ResultRetry:
		o.counters.retried.Inc()
	default:
		o.counters.failed.Inc()
	}
	o.report(ctx, account, w, d)
}

// judgeMail is what follows from an attempt.
func (o *Outbox) judgeMail(w *resolver.OutboxWork, r outcome.Result) resolver.OutboxDone {
	if r.OK() {
		return resolver.OutboxDone{Result: resolver.ResultSent, ProviderID: r.ProviderID}
	}
	d := resolver.OutboxDone{Result: resolver.ResultFailed, Reason: r.Err().Error()}
	switch r.Class {
	case outcome.Permanent, outcome.Retired:
		if r.Hard {
			d.Result = resolver.ResultBounced
		}
		return d
	}
	if o.opts.Now().UnixMilli()-w.CreatedMs >= mailTries.Milliseconds() {
		if r.Class == outcome.Refused {
			d.Result = resolver.ResultRefused
		}
		return d
	}
	d.Result, d.DelayMs = resolver.ResultRetry, mailBackoff(w.Attempt, o.opts.Rand(), r.RetryAfter).Milliseconds()
	return d
}

// mailBackoff is how long to wait after so many failed attempts before this one:
// between half of a ceiling that doubles and the ceiling.
func mailBackoff(failed int, random uint64, wanted time.Duration) time.Duration {
	ceiling := mailMaxPause
	if failed < 8 {
		ceiling = min(ceiling, mailPause<<max(failed, 0))
	}
	half := ceiling / 2
	return max(half+time.Duration(random%uint64(half)), min(wanted, mailMaxWanted))
}

// compose makes the message of an item: the same at every attempt, as long as its
// template stays the same.
func (o *Outbox) compose(ctx context.Context, account uint64, w *resolver.OutboxWork) (*email.Message, error) {
	var in resolver.OutboxMail
	if err := decode(w.Payload, &in); err != nil {
		return nil, err
	}
	var p *resolver.Profile
	var key tracking.Key
	var keys []*email.Key
	var company resolver.Company
	content := confirmation
	err := o.opts.Node.Read(ctx, account, func(v *resolver.View) (err error) {
		if p, err = v.Profile(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		company = v.Company()
		if in.TemplateID != "" {
			t, ok := v.Template(in.TemplateID)
			if !ok {
				return errors.New("the template was deleted before the message went out")
			}
			content = resolver.CampaignContent{Subject: t.Subject, HTML: t.HTML, Text: t.Text}
		}
		if d, ok := v.Domain(domainOf(in.Sender)); ok && d.PrivateKey != "" {
			k, err := email.ParseKey(d.Name, d.Selector, []byte(d.PrivateKey))
			if err != nil {
				return fmt.Errorf("the key of the sender domain %s: %w", d.Name, err)
			}
			keys = append(keys, k)
		}
		key, err = AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch reason := p.Blocked(mediumEmail); {
	case slices.Contains(resolver.Undeliverable, reason):
		return nil, errBlocked(reason)
	case in.Confirm && reason != "pending":
		return nil, errMoot
	}
	content.Sender = in.Sender
	if in.Subject != "" {
		content.Subject = in.Subject
	}
	if in.SenderName != "" {
		content.SenderName = in.SenderName
	}
	if !in.Confirm {
		content.HTML = withPixel(content.HTML)
	}
	c, err := compile(content)
	if err != nil {
		return nil, err
	}
	links := Links{Base: o.opts.PublicURL, Account: account, Key: key}
	send := SealSend(key, w.Send())
	m := &email.Message{
		ID:     fmt.Sprintf("%016x.%s@%s", account, hex.EncodeToString(send[:]), domainOf(in.Sender)),
		Date:   time.UnixMilli(w.CreatedMs),
		From:   email.Address{Addr: in.Sender},
		To:     email.Address{Addr: strings.TrimSpace(in.To)},
		SendID: SendText(account, send),
		Keys:   keys,
	}
	known := c.values(links, p, send)
	err = c.fill(m, func(path []string) (string, bool) {
		if len(path) == 1 {
			switch path[0] {
			case resolver.TagConfirm:
				if in.Confirm {
					return links.ConfirmURL(w.Root), true
				}
			case "company_name":
				if in.Confirm {
					return company.Name, true
				}
			}
		}
		// The service's own links are not the caller's to set.
		if !slices.Contains([]string{tagOpen, tagClick, TagUnsubscribe}, path[0]) {
			if value, ok := JSONValue(in.Data, path); ok {
				return value, true
			}
		}
		return known(path)
	})
	if err == nil {
		err = m.Validate()
	}
	return m, err
}

// withPixel adds the picture that tells of opens to a body.
func withPixel(html string) string {
	if html == "" {
		return ""
	}
	pixel := `<img src="{{` + tagOpen + `}}" width="1" height="1" alt="" style="display:block">`
	const end = "</body>"
	for i := len(html) - len(end); i >= 0; i-- {
		if strings.EqualFold(html[i:i+len(end)], end) {
			return html[:i] + pixel + html[i:]
		}
	}
	return html + pixel
}

// CheckMail says what is wrong with the texts of a template for a single e-mail:
// a [*ContentError].
func CheckMail(t resolver.Template, subject, senderName string) error {
	if subject == "" {
		subject = t.Subject
	}
	_, err := compile(resolver.CampaignContent{Subject: subject, HTML: withPixel(t.HTML), Text: t.Text, SenderName: senderName})
	return err
}
