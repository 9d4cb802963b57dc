package trackingapi

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver/eventtypes"
)

// TestFloodOfABrowserKey: an address that sends too much is answered 429 with a pause that
// SDKs keep, and nothing of it is stored. Other addresses, and servers, continue; so does the
// address after the pause.
func TestFloodOfABrowserKey(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Memory = ingest.NewMemory(1 << 30) })
	address := "192.0.2.7"
	send := func(key string, events int) *fasthttp.RequestCtx {
		body := `{"batch":[` + strings.Repeat(`{"type":"track","userId":"u","event":"x"},`, events-1) + `{"type":"track","userId":"u","event":"x"}]}`
		ctx := new(fasthttp.RequestCtx)
		ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.ParseIP(address)}, nil)
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI("/v1/batch")
		ctx.Request.Header.Set("Authorization", basic(key))
		ctx.Request.SetBodyRaw([]byte(body))
		w.h.Before(func(*fasthttp.RequestCtx) { t.Fatal("not taken") })(ctx)
		return ctx
	}
	for n := 0; n <= floodBurst; n += publicEvents {
		if ctx := send(w.browser, publicEvents); ctx.Response.StatusCode() != 200 {
			t.Fatalf("after %d events: %d %s", n, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	stored := len(w.node.events)
	ctx := send(w.browser, 1)
	pause, err := strconv.Atoi(string(ctx.Response.Header.Peek("Retry-After")))
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 429 || err != nil || pause < 1 || pause > 300 || !strings.HasPrefix(got, `{"success":false,"code":"too_many_events"`) || len(w.node.events) != stored {
		t.Fatalf("%d %s, Retry-After %d, %d events", ctx.Response.StatusCode(), got, pause, len(w.node.events)-stored)
	}
	if ctx := send(w.server, 10); ctx.Response.StatusCode() != 200 {
		t.Fatalf("a server: %d", ctx.Response.StatusCode())
	}
	address = "192.0.2.8"
	if ctx := send(w.browser, 10); ctx.Response.StatusCode() != 200 {
		t.Fatalf("another address: %d", ctx.Response.StatusCode())
	}
	address = "192.0.2.7"
	w.now = w.now.Add(time.Duration(pause) * time.Second)
	if ctx := send(w.browser, 1); ctx.Response.StatusCode() != 200 {
		t.Fatalf("after the pause: %d", ctx.Response.StatusCode())
	}
}

// TestFloodsAreBounded: however many addresses there are, few are remembered, and the pause
// stays one that SDKs keep.
func TestFloodsAreBounded(t *testing.T) {
	var f floods
	now := time.UnixMilli(received)
	one := sender{7, netip.MustParsePrefix("192.0.2.7/32")}
	for range 1000 {
		f.count(one, 10_000, now)
	}
	if pause := f.wait(one, now); pause != maxRetryAfter {
		t.Fatalf("a pause of %v", pause)
	}
	if pause := f.wait(one, now.Add(maxRetryAfter)); pause != 0 {
		t.Fatalf("after the pause another one of %v", pause)
	}
	for i := range 3 * maxAddresses {
		f.count(sender{7, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)}, 100_000, now)
	}
	if n := len(f.mu.spent); n > maxAddresses {
		t.Fatalf("%d addresses", n)
	}
}

// TestRefusedEventLeavesItsName: the first event of a type that is taken brings the type's
// name.
func TestRefusedEventLeavesItsName(t *testing.T) {
	w := newWorld(t, nil)
	send := func(user string) {
		t.Helper()
		if ctx := w.ask("POST", "/v1/track", fmt.Appendf(nil, `{"userId":%q,"event":"Order Completed"}`, user), "Authorization", basic(w.server)); ctx.Response.StatusCode() != 200 {
			t.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	send("refused")
	if len(w.node.names) != 0 {
		t.Fatalf("a type that is not there is named: %v", w.node.names)
	}
	for range 2 {
		send("u1")
	}
	if want := (eventtypes.Name{Key: "order_completed", Name: "Order Completed"}); len(w.node.names) != 1 || w.node.names[0] != want {
		t.Fatalf("names %v", w.node.names)
	}
}
