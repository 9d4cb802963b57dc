package messaging

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// hook delivers one webhook and reports what became of it. The state lets only
// the first of an ordered endpoint's deliveries be due, so they go out in order.
// [hookTurns] bounds those of all others, so that a failing endpoint holds back no
// other.
func (o *Outbox) hook(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	r, ok, err := o.request(account, w)
	d := outbox.Done{Result: outbox.ResultMoot}
	switch {
	case errors.Is(err, resolver.ErrNotOwner):
		return // the account's partition was given up
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, resolver.ErrNoAccount), err != nil && ctx.Err() != nil:
		_ = o.opts.Sleep(o.ctx, maxPause) // the node says itself why it has failed
		return
	case err != nil:
		d = outbox.Done{Result: outbox.ResultFailed, Reason: err.Error(), Log: new(outbox.DeliveryAnswer)}
	case ok:
		end, mine := o.claim(ctx, account, w)
		if !mine {
			return
		}
		defer end()
		result := o.opts.Webhooks.Deliver(ctx, r)
		if result.Aborted {
			return // cut off by the stop: it continues at the next start
		}
		o.turns.learn(hookTarget{account, w.Endpoint}, result, o.opts.Now().UnixMilli())
		d = o.judgeHook(w, result)
		d.Log = &outbox.DeliveryAnswer{Status: result.Status, TookMs: result.Took.Milliseconds(), Answer: result.Answer}
	}
	o.hooks[d.Result].Inc()
	o.report(ctx, account, w, d)
}

// request makes the request of an item; ok is false when the endpoint is not
// there any more.
func (o *Outbox) request(account uint64, w *view.OutboxWork) (r webhook.Request, ok bool, err error) {
	var e outbox.Endpoint
	err = o.opts.Node.Look(account, func(v *resolver.View) error {
		e, ok = v.Outbox().Endpoint(w.Endpoint)
		return nil
	})
	if err != nil || !ok {
		return r, false, err
	}
	r = webhook.Request{ID: WebhookID(account, w.Origin), URL: e.URL, Body: w.Payload}
	for _, text := range e.Signing(o.opts.Now().UnixMilli()) {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return r, false, err
		}
		r.Secrets = append(r.Secrets, secret)
	}
	return r, true, nil
}

// WebhookID is the webhook-id of a delivery, the same at every attempt and after
// a replay.
func WebhookID(account, origin uint64) string {
	return fmt.Sprintf("msg_%016x_%d", account, origin)
}

// judgeHook decides what follows from an attempt.
func (o *Outbox) judgeHook(w *view.OutboxWork, r webhook.Result) outbox.Done {
	switch r.Class {
	case webhook.Delivered:
		return outbox.Done{Result: outbox.ResultSent}
	case webhook.Gone:
		return outbox.Done{Result: outbox.ResultGone, Reason: r.Reason}
	case webhook.Retry:
		if wait, ok := webhook.Backoff(w.Attempt+1, o.opts.Rand(), r.RetryAfter); ok {
			return outbox.Done{Result: outbox.ResultRetry, Reason: r.Reason, DelayMs: wait.Milliseconds()}
		}
	}
	return outbox.Done{Result: outbox.ResultFailed, Reason: r.Reason}
}
