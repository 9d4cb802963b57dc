package api

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// grow makes an account of n people, of whom every second has bought, and saves
// and builds segments of several kinds.
func (s *service) grow(n int) (ids []string) {
	s.t.Helper()
	const batch = 5000
	for from := 0; from < n; from += batch {
		var b strings.Builder
		b.WriteString(`{"events":[`)
		for i := from; i < min(n, from+batch); i++ {
			if i > from {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"event_type":%q,"user":{"email":"p%d@x.io","geo":{"city":%q}},"properties":{"value":%d}}`,
				[]string{"item_purchased", "seen"}[i%2], i, []string{"Berlin", "Paris", "Rome"}[i%3], i%500)
		}
		b.WriteString(`]}`)
		if res, answer := s.send("POST", "/api/v1/events/batch", b.String(), "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret); res.StatusCode != 202 {
			s.t.Fatalf("%d %.200s", res.StatusCode, answer)
		}
	}
	for _, d := range []string{
		buyers, spender, berlin,
		`{"kind":"activity","event":"item_purchased","window":{"last_days":30}}`,
		`{"kind":"activity","event":"seen","did":false,"window":{"last_days":7}}`,
		fmt.Sprintf(`{"match":"all","conditions":[%s,%s,{"match":"any","conditions":[%s,{"kind":"activity","event":"seen","window":{"last_days":30}}]}]}`, buyers, berlin, spender),
	} {
		ids = append(ids, s.segment(d[:min(len(d), 100)], d).ID)
	}
	for _, id := range ids {
		s.live(id)
	}
	s.clock.Advance(time.Hour)
	return ids
}

// call makes a call without the network.
func (s *service) call(ctx *fasthttp.RequestCtx, method, path, body string) {
	ctx.Request.Reset()
	ctx.Response.Reset()
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(Prefix + path)
	ctx.Request.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		ctx.Request.Header.SetContentType("application/json")
		ctx.Request.SetBodyString(body)
	}
	s.handler(ctx)
	if ctx.Response.StatusCode() != 200 {
		s.t.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}

// benchPeople is how many profiles benchmarks have.
func benchPeople(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("MUSTER_BENCH_PEOPLE"))
	if err != nil {
		return 100_000
	}
	return n
}

// BenchmarkLive measures what the engine answers: the handler with everything
// but the network.
func BenchmarkLive(b *testing.B) {
	s := newService(b, &memHistory{}, nil)
	ids := s.grow(benchPeople(b))
	all := ids[len(ids)-1]
	for _, x := range []struct{ name, method, path, body string }{
		{"count", "GET", "/segments/" + ids[0], ""},
		{"count-window", "GET", "/segments/" + ids[3], ""},
		{"count-nested", "GET", "/segments/" + all, ""},
		{"list-of-6", "GET", "/segments", ""},
		{"members-100", "GET", "/segments/" + all + "/members", ""},
		{"profile", "GET", "/profiles?email=p7@x.io", ""},
		{"preview", "POST", "/segments/preview", `{"definition":{"match":"all","conditions":[` + buyers + `,` + berlin + `]}}`},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			var ctx fasthttp.RequestCtx
			for b.Loop() {
				s.call(&ctx, x.method, x.path, x.body)
			}
		})
	}
}

// TestLiveCountAllocates: a count's memory does not depend on how many people
// there are, and is small.
func TestLiveCountAllocates(t *testing.T) {
	var allocated [2]float64
	for i, people := range []int{100, 20_000} {
		s := newService(t, &memHistory{}, nil)
		ids := s.grow(people)
		var ctx fasthttp.RequestCtx
		for _, id := range ids {
			allocated[i] = max(allocated[i], testing.AllocsPerRun(100, func() { s.call(&ctx, "GET", "/segments/"+id, "") }))
		}
	}
	if allocated[0] > 60 || allocated[1] > allocated[0]+2 {
		t.Errorf("a count takes %v allocations with few people and %v with many", allocated[0], allocated[1])
	}
}
