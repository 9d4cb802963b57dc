package messaging

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/view"
)

// How long single e-mails are tried: a relay that is down over a night, or a
// password that an operator must put right, loses none.
const (
	mailTries     = 12 * time.Hour
	mailPause     = 15 * time.Second
	mailMaxPause  = 30 * time.Minute
	mailMaxWanted = time.Hour // of what a relay may ask for
)

// The message that asks for a confirmation where the account has no template of
// its own.
var confirmation = campaigns.Content{
	Subject: "Please confirm your subscription",
	HTML: `<!doctype html><html><body><p>Hello {{first_name | default: "there"}},</p>` +
		`<p>please confirm that you want to hear from {{company_name}}:</p>` +
		`<p><a href="{{confirm_url}}">Confirm my subscription</a></p>` +
		`<p>If you did not ask for this, do nothing: you will not hear from us.</p></body></html>`,
	Text: "Hello {{first_name | default: \"there\"}},\n\nplease confirm that you want to hear from {{company_name}}:\n\n{{confirm_url}}\n\n" +
		"If you did not ask for this, do nothing: you will not hear from us.\n",
	SenderName: "{{company_name}}",
}

// maySend reports whether a profile may get advertising on a channel, by the same
// rule as campaigns.
func maySend(v *resolver.View, p *view.Profile, channel string) error {
	if reason := p.SuppressionReason(channel); reason != "" {
		return errSuppressed(reason)
	}
	reason, err := v.Reach().WhyUnreachable(p.Ordinal, channel)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errState, err)
	case reason != "":
		return compose.Refused("not sent by " + channel + ": " + reason)
	}
	switch refused, err := v.Reach().NumberRefused(p.Ordinal, channel); {
	case err != nil:
		return fmt.Errorf("%w: %w", errState, err)
	case refused:
		return compose.Refused("not sent by " + channel + ": " + reach.ReasonNumberRefused)
	}
	return nil
}

// mail sends one e-mail and reports what became of it.
func (o *Outbox) mail(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	m, err := o.compose(account, w)
	if err != nil {
		if d, known := o.unmade(ctx, account, w, err); known {
			if d.Result == outbox.ResultFailed && email.Invalid(err).Hard {
				d.Result = outbox.ResultBounced
			}
			o.mails.count(d.Result)
			o.report(ctx, account, w, d)
		}
		return
	}
	end, mine := o.claim(ctx, account, w)
	if !mine {
		return
	}
	defer end()
	r := o.opts.Mailer.Send(ctx, m)
	if ctx.Err() != nil && !r.OK() {
		return // cut off by the stop: it continues at the next start
	}
	d := o.judge(account, w, r)
	o.mails.count(d.Result)
	o.report(ctx, account, w, d)
}

// unmade is what follows when a message cannot be made; known is false when
// nothing can be said of it now.
func (o *Outbox) unmade(ctx context.Context, account uint64, w *view.OutboxWork, err error) (d outbox.Done, known bool) {
	var refused compose.Refused
	switch {
	case ctx.Err() != nil, errors.Is(err, resolver.ErrNotOwner):
		return d, false
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, resolver.ErrNoAccount):
		_ = o.opts.Sleep(o.ctx, maxPause) // the node says itself why it has failed
		return d, false
	case errors.Is(err, errState):
		return o.judge(account, w, outcome.Failed(outcome.Temporary, "state", err)), true
	case errors.Is(err, errMoot):
		return outbox.Done{Result: outbox.ResultMoot}, true
	case errors.As(err, &refused):
		return outbox.Done{Result: outbox.ResultRefused, Reason: err.Error(), Unreachable: o.neverOut(account, w)}, true
	}
	return outbox.Done{Result: outbox.ResultFailed, Reason: err.Error(), Unreachable: o.neverOut(account, w)}, true
}

// neverOut reports whether no earlier process can have sent a message of a flow: it was
// queued since this one owns the account. Otherwise it may be out already, whatever
// becomes of it now, and no other channel must take its place.
func (o *Outbox) neverOut(account uint64, w *view.OutboxWork) bool {
	return w.Flow != "" && w.Queued > o.opts.Node.LeasedSince(account)
}

// judge decides what follows from an attempt to send a message.
func (o *Outbox) judge(account uint64, w *view.OutboxWork, r outcome.Result) outbox.Done {
	if r.OK() {
		return outbox.Done{Result: outbox.ResultSent, ProviderID: r.ProviderID}
	}
	d := outbox.Done{Result: outbox.ResultFailed, Reason: r.Err().Error(), Handed: r.Class == outcome.Ambiguous}
	switch r.Class {
	case outcome.Permanent, outcome.Retired:
		if r.Hard {
			d.Result = outbox.ResultBounced
		}
		d.Unreachable = o.neverOut(account, w)
		return d
	}
	if o.opts.Now().UnixMilli()-w.CreatedMs >= mailTries.Milliseconds() {
		if r.Class == outcome.Refused {
			d.Result = outbox.ResultRefused
		}
		return d
	}
	d.Result, d.DelayMs = outbox.ResultRetry, mailBackoff(w.Attempt, o.opts.Rand(), r.RetryAfter).Milliseconds()
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
func (o *Outbox) compose(account uint64, w *view.OutboxWork) (*email.Message, error) {
	var in messages.Mail
	if err := decode(w.Payload, &in); err != nil {
		return nil, err
	}
	var p *view.Profile
	var key tracking.Key
	address := "" // that a subscription is confirmed at
	var domain domains.Domain
	var company resolver.Company
	waits := false
	content := confirmation
	err := o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profiles().Get(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		if in.Advertising {
			if err := maySend(v, p, compose.MediumEmail); err != nil {
				return err
			}
		}
		company = v.Company()
		switch {
		case in.Submission != "":
			if waits, err = v.Forms().Waits(w.Root, in.Submission); err != nil {
				return fmt.Errorf("%w: %w", errState, err)
			}
		case in.Confirm:
			address = v.Profiles().EmailHash(in.To)
			waits = p.SuppressionReason(compose.MediumEmail) == "pending" && address == v.Profiles().EmailHash(p.Newest(resolver.IdentityEmail))
		}
		if in.TemplateID != "" {
			t, ok, err := v.Campaigns().WholeTemplate(in.TemplateID)
			switch {
			case err != nil:
				return fmt.Errorf("%w: %w", errState, err)
			case !ok:
				return errors.New("the template was deleted before the message went out")
			}
			if !in.Advertising && !in.Confirm && !t.Transactional && p.Consent(compose.MediumEmail).Status == "unsubscribed" {
				return compose.Refused(messages.UnsubscribedReason)
			}
			content = campaigns.Content{Subject: t.Subject, HTML: t.HTML, Text: t.Text}
		} else if !in.Confirm {
			content = campaigns.Content{HTML: in.HTML, Text: in.Text}
		}
		// It was verified when the message was queued, or when the flow went live.
		if err := v.Domains().MayBeSender(in.Sender); err != nil {
			return err
		}
		domain, _ = v.Domains().Get(compose.DomainOf(in.Sender))
		key, err = compose.AccountKey(v, account)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch reason := p.SuppressionReason(compose.MediumEmail); {
	case slices.Contains(messages.Undeliverable, reason):
		return nil, errSuppressed(reason)
	case in.Confirm && !waits:
		return nil, errMoot
	}
	// Not while the state is read: nothing is applied meanwhile.
	keys, err := o.keys.of(domain)
	if err != nil {
		return nil, err
	}
	content.Sender = in.Sender
	if in.Subject != "" {
		content.Subject = in.Subject
	}
	if in.SenderName != "" {
		content.SenderName = in.SenderName
	}
	switch {
	case in.Advertising:
		if content, err = compose.TakeLinks(content); err != nil {
			return nil, err
		}
	case !in.Confirm:
		content.HTML = compose.WithPixel(content.HTML)
	}
	c, err := compose.Compile(content)
	if err != nil {
		return nil, err
	}
	links := compose.Links{Base: o.opts.PublicURL, Account: account, Key: key, Flow: w.Flow, Step: w.Step}
	send := compose.SealSend(key, w.Send())
	m := &email.Message{
		ID:     compose.MessageID(account, hex.EncodeToString(send[:]), in.Sender),
		Date:   time.UnixMilli(w.CreatedMs),
		From:   email.Address{Addr: in.Sender},
		To:     email.Address{Addr: strings.TrimSpace(in.To)},
		SendID: compose.SendText(account, send),
		Keys:   keys,
	}
	m.ReplyTo.Addr = in.ReplyTo
	if in.Advertising {
		m.To = email.Address{Name: strings.TrimSpace(p.FirstName + " " + p.LastName), Addr: p.Newest(resolver.IdentityEmail)}
		m.Unsubscribe.URL = links.URL(tracking.Unsubscribe, send, 0)
	}
	if w.Flow != "" {
		m.FeedbackID = w.Flow + ":" + resolver.AccountID(account) + ":muster"
	}
	known := c.Values(links, p, send)
	values := compose.EventValues(in.Event, func(path []string) (string, bool) {
		if len(path) == 1 {
			switch path[0] {
			case campaigns.TagConfirm:
				if in.Confirm {
					return links.ConfirmURL(w.Root, address, in.Submission), true
				}
			case compose.TagCompany:
				if in.Confirm {
					return company.Name, true
				}
			}
		}
		// The service's own links are not the caller's to set.
		if !slices.Contains([]string{compose.TagOpen, compose.TagClick, compose.TagUnsubscribe, compose.TagPreferences}, path[0]) {
			if value, ok := rawjson.Scalar(in.Data, path); ok {
				return value, true
			}
		}
		return known(path)
	})
	filled := c.WithClicks(links, send, values)
	if w.Flow != "" {
		if err := c.CheckHoles(filled); err != nil {
			return nil, err
		}
	}
	if err = c.Fill(m, filled); err == nil {
		err = m.Validate()
	}
	return m, err
}
