package trackingapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/segment"
)

// around is a batch of n events that each get what its context has, which is size long.
func around(n, size int) []byte {
	one := `,{"type":"identify","userId":"1"}`
	return []byte(`{"context":{"traits":{"a":"` + strings.Repeat("x", size) + `"}},"batch":[` + strings.Repeat(one, n)[1:] + `]}`)
}

// TestContextOfABatchIsNoAmplifier: a few kilobytes, packed, must not become a record of
// hundreds of megabytes, since the context stands in each event.
func TestContextOfABatchIsNoAmplifier(t *testing.T) {
	w := newWorld(t, nil)
	// More than a browser may send in an event: none is taken, and building them ends.
	ctx := w.ask("POST", "/v1/batch", packed(string(around(2500, 60_000))), "Authorization", basic(w.browser))
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 400 || !strings.Contains(got, `"code":"payload_too_large"`) || !strings.Contains(got, "context") || len(w.node.events) != 0 {
		t.Errorf("%d %s, %d events", ctx.Response.StatusCode(), got, len(w.node.events))
	}
	ctx = w.ask("POST", "/v1/batch", around(2, 60_000), "Authorization", basic(w.browser))
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || strings.Count(got, `"code":"payload_too_large"`) != 2 || len(w.node.events) != 0 {
		t.Errorf("%d %s, %d events", ctx.Response.StatusCode(), got, len(w.node.events))
	}
	// A server's may be as long as a record.
	ctx = w.ask("POST", "/v1/batch", around(10_000, 60_000), "Authorization", basic(w.server))
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 400 || !strings.Contains(got, `"code":"payload_too_large"`) || len(w.node.events) != 0 {
		t.Errorf("%d %s, %d events", ctx.Response.StatusCode(), got, len(w.node.events))
	}
	ctx = w.ask("POST", "/v1/batch", around(100, 60_000), "Authorization", basic(w.server))
	if ctx.Response.StatusCode() != 200 || len(w.node.events) != 100 {
		t.Errorf("%d %s, %d events", ctx.Response.StatusCode(), ctx.Response.Body(), len(w.node.events))
	}
	// What the record needs beyond the body is counted in the memory of requests.
	w = newWorld(t, func(o *Options) { o.Memory = ingest.NewMemory(1 << 20) })
	ctx = w.ask("POST", "/v1/batch", around(100, 60_000), "Authorization", basic(w.server))
	if ctx.Response.StatusCode() != 503 || len(w.node.events) != 0 {
		t.Errorf("%d %s, %d events", ctx.Response.StatusCode(), ctx.Response.Body(), len(w.node.events))
	}
}

// TestBrowsersSendNoEventsOfTheService: flows, segments and statistics rely on what the
// service records itself, and a browser's key is public.
func TestBrowsersSendNoEventsOfTheService(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range segment.OwnEvents() {
		for _, body := range []string{
			fmt.Sprintf(`{"type":"track","userId":"u","event":%q}`, name),
			fmt.Sprintf(`{"type":"track","userId":"u","event":%q}`, strings.ReplaceAll(strings.ToUpper(name[:1])+name[1:], "_", " ")),
		} {
			w.node.events = nil
			ctx := w.ask("POST", "/v1/t", []byte(body), "Authorization", basic(w.browser))
			if got := string(ctx.Response.Body()); !strings.Contains(got, `"code":"not_allowed"`) || len(w.node.events) != 0 {
				t.Errorf("%s: %s, %q", body, got, w.node.events)
			}
			if w.ask("POST", "/v1/t", []byte(body), "Authorization", basic(w.server)); len(w.node.events) != 1 {
				t.Errorf("%s from a server: %q", body, w.node.events)
			}
		}
		w.node.events = nil
		w.ask("POST", "/capture/", fmt.Appendf(nil, `{"api_key":%q,"event":%q,"distinct_id":"u"}`, w.browser, name))
		if len(w.node.events) != 0 {
			t.Errorf("PostHog's %s: %q", name, w.node.events)
		}
	}
}

// TestManyKeysInABatch: a request's events have few write keys, each looked up once, and
// pages need an origin that the source of each of them allows.
func TestManyKeysInABatch(t *testing.T) {
	w := newWorld(t, nil)
	var list []string
	for n := range 2 * maxKeys {
		list = append(list, fmt.Sprintf(`{"type":"track","userId":"u","event":"x","writeKey":"%s%02d"}`, w.server[:len(w.server)-2], n))
	}
	ctx := w.ask("POST", "/v1/batch", []byte(`{"batch":[`+strings.Join(list, ",")+`]}`), "Authorization", basic(w.server))
	if got := string(ctx.Response.Body()); strings.Count(got, fmt.Sprintf("more than %d write keys", maxKeys)) != maxKeys || len(w.node.events) != 0 {
		t.Errorf("%s, %q", got, w.node.events)
	}
	ctx = w.ask("POST", "/v1/batch", fmt.Appendf(nil, `{"batch":[{"type":"track","userId":"u","event":"x","writeKey":%q},{"type":"track","userId":"v","event":"x"}]}`, w.browser), "Authorization", basic(w.server), "Origin", "https://evil.example")
	if got := string(ctx.Response.Body()); !strings.Contains(got, `"code":"origin_not_allowed"`) || len(w.node.events) != 1 {
		t.Errorf("%s, %q", got, w.node.events)
	}
}

// TestRefusedEventsShownAreBounded: people who watch are shown the first of many.
func TestRefusedEventsShownAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	ctx := w.ask("POST", "/v1/batch", []byte(`{"batch":[`+strings.Repeat(`{"type":"nothing"},`, 999)+`{"type":"nothing"}]}`), "Authorization", basic(w.server))
	if len(w.node.shown) != maxShown || !strings.Contains(string(ctx.Response.Body()), `"rejected_count":1000`) {
		t.Errorf("%d are shown, %.100s", len(w.node.shown), ctx.Response.Body())
	}
}
