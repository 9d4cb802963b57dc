package messaging

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// maxCallPause bounds the wait between two attempts of a call, and what a
// receiver may ask for: an enrolment waits for the call.
const maxCallPause = time.Hour

// call makes one request of a flow's and reports what became of it. When too
// many of the account's are under way to the same host, the item waits without
// its place.
func (o *Outbox) call(account uint64, w *view.OutboxWork) {
	ctx, cancel := graceful(o.ctx)
	defer cancel()
	r, attempts, err := o.composeCall(account, w)
	if err != nil {
		if d, known := o.unmade(ctx, account, w, err); known {
			o.countCall(d.Result)
			o.report(ctx, account, w, d)
		}
		return
	}
	host := hostOf(account, r.URL)
	if !o.hosts.enter(host, flight{account, w.Seq}) {
		return
	}
	defer o.hosts.leave(host)
	end, mine := o.claim(ctx, account, w)
	if !mine {
		return
	}
	defer end()
	result := o.opts.Webhooks.Deliver(ctx, r)
	if result.Aborted {
		return // cut off by the stop: it continues at the next start
	}
	d := o.judgeCall(w, attempts, result)
	o.countCall(d.Result)
	o.report(ctx, account, w, d)
}

func (o *Outbox) countCall(result string) {
	if c := o.calls[result]; c != nil {
		c.Inc()
	}
}

// hostOf is whose turns a call takes: those of an account at a host.
func hostOf(account uint64, target string) string {
	host := target
	if u, err := url.Parse(target); err == nil {
		host = strings.ToLower(u.Host)
	}
	return resolver.AccountID(account) + "/" + host
}

// judgeCall decides what follows from an attempt: no answer, a server's own fault
// and one for a while are tried again.
func (o *Outbox) judgeCall(w *view.OutboxWork, attempts int, r webhook.Result) outbox.Done {
	if r.Class == webhook.Delivered {
		return outbox.Done{Result: outbox.ResultSent}
	}
	again := false
	switch s := r.Status; s {
	case 0:
		again = r.Class == webhook.Retry
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		again = true
	default:
		again = s >= 500
	}
	if again && w.Attempt+1 < attempts {
		if wait, ok := webhook.Backoff(w.Attempt+1, o.opts.Rand(), r.RetryAfter); ok {
			return outbox.Done{Result: outbox.ResultRetry, Reason: r.Reason, DelayMs: min(wait, maxCallPause).Milliseconds()}
		}
	}
	return outbox.Done{Result: outbox.ResultFailed, Reason: r.Reason}
}

// composeCall makes the request of an item: the same id at every attempt.
func (o *Outbox) composeCall(account uint64, w *view.OutboxWork) (r webhook.Request, attempts int, err error) {
	var in messages.Request
	if err := decode(w.Payload, &in); err != nil {
		return r, 0, err
	}
	var p *view.Profile
	err = o.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if p, err = v.Profiles().Get(w.Root); err != nil {
			return fmt.Errorf("%w: %w", errState, err)
		}
		return nil
	})
	if err != nil {
		return r, 0, err
	}
	values := compose.EventValues(in.Event, compose.ProfileValues(p))
	r = webhook.Request{
		ID: WebhookID(account, w.Origin), Method: in.Method, Headers: map[string]string{},
		Timeout: time.Duration(in.TimeoutMs) * time.Millisecond,
	}
	if r.URL, err = callURL(in.URL, values); err != nil {
		return r, 0, err
	}
	step := flows.Webhook{Body: in.Body}
	for _, h := range in.Headers {
		value, err := fillIn(h.Value, merge.Header, values)
		if err != nil {
			return r, 0, fmt.Errorf("headers: %s: %w", h.Name, err)
		}
		name := http.CanonicalHeaderKey(h.Name)
		r.Headers[name] = value
		step.Headers = append(step.Headers, flows.Header{Name: name, Value: value})
	}
	mode := step.BodyMode()
	if r.Body, err = callBody(in.Body, mode, r.Headers["Content-Type"], values); err != nil {
		return r, 0, fmt.Errorf("body: %w", err)
	}
	if _, given := r.Headers["Content-Type"]; !given && mode != merge.JSON && len(r.Body) > 0 {
		r.Headers["Content-Type"] = "text/plain; charset=utf-8"
	}
	return r, in.Attempts, nil
}

// callURL is where a call goes: host, path and query are those that the author
// wrote, and values are data in them.
func callURL(target string, values merge.Lookup) (string, error) {
	rendered, err := fillIn(target, merge.Target, values)
	if err != nil {
		return "", fmt.Errorf("url: %w", err)
	}
	// Dots are not encoded, so a value of dots alone would lead to another path.
	path, _, _ := strings.Cut(rendered, "?")
	for _, part := range strings.Split(path, "/") {
		if part == "." || part == ".." {
			return "", errors.New("url: a value makes a part of the path that is only dots")
		}
	}
	return tracking.Location(target, rendered)
}

// callBody fills in a body. In a form, values are escaped as those of a URL's
// query are, which is the same form.
func callBody(body string, mode merge.Mode, contentType string, values merge.Lookup) ([]byte, error) {
	const query = "https://form.invalid/?"
	if !strings.HasPrefix(strings.ToLower(contentType), "application/x-www-form-urlencoded") {
		text, err := fillIn(body, mode, values)
		return []byte(text), err
	}
	text, err := fillIn(query+body, merge.URL, values)
	return []byte(strings.TrimPrefix(text, query)), err
}

func fillIn(text string, mode merge.Mode, values merge.Lookup) (string, error) {
	t, err := merge.Parse(text, mode)
	if err != nil {
		return "", err
	}
	return t.Render(values)
}
