package loader

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// What Replay tells must be what a server saw, also of sweeps, of several
// companies and of requests that were refused.
func TestReplayTellsWhatWasSent(t *testing.T) {
	var mu sync.Mutex
	saw, calls := map[string]int{}, 0
	address := serveFunc(t, func(ctx *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		acked := ctx.IsPost() && (calls < 40 || calls%10 != 3)
		body, err := fastjson.ParseBytes(ctx.PostBody())
		if err != nil {
			t.Error(err)
		}
		for _, e := range body.GetArray("events") {
			saw[fmt.Sprintf("%s c-%s %s %v", ctx.Request.Header.Peek("X-App-Id"), e.GetStringBytes("user", "external_id")[2:], e.GetStringBytes("event_type"), acked)]++
		}
		if !acked {
			ctx.SetStatusCode(503)
			return
		}
		ctx.SetStatusCode(202)
		ctx.SetBodyString(`{"success":true}`)
	})
	var seats []Seat
	for i := range 5 {
		seats = append(seats, Seat{Company: i % 2, Target: Target{Address: address, Path: "/", Expect: ExpectSuccess, Header: [][2]string{{"X-App-Id", fmt.Sprint(i % 2)}}}})
	}
	f, err := NewFleetOf(seats, spec, 70)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	saturate(t, f, time.Millisecond, func() bool { mu.Lock(); defer mu.Unlock(); return calls > 0 })
	calls = -1000 // a sweep may not fail
	if _, err := f.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	calls = 0
	if r := saturate(t, f, 100*time.Millisecond, func() bool { mu.Lock(); defer mu.Unlock(); return calls > 60 }); r.Failed == 0 {
		t.Fatal(r)
	}
	n, known := 0, map[string]bool{}
	err = f.Replay(func(company int, profile uint64, eventType string, acked bool) {
		saw[fmt.Sprintf("%d c-%010d %s %v", company, profile, eventType, acked)]--
		if profile < uint64(spec.Profiles) {
			known[fmt.Sprint(company, " ", profile)] = true
		}
		n++
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	for what, left := range saw {
		if left != 0 {
			t.Fatalf("%s: seen %d times more than told", what, left)
		}
	}
	if len(known) != 2*spec.Profiles {
		t.Errorf("%d known profiles of two companies were sent, want all %d", len(known), 2*spec.Profiles)
	}
	for _, a := range f.Acked() {
		if a.Worker < 70 || a.Worker > 74 || a.Company != (a.Worker-70)%2 {
			t.Errorf("range %+v", a)
		}
	}
}
