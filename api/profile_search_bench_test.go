package api

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	benchFirst = []string{"Ann", "Anna", "Bernd", "Bob", "Carla", "Dee", "Émile", "Fatima", "Grace", "Hans", "Ines", "Jörg", "Kim", "Lena", "Mo", "Nora", "Olga", "Pia", "Quinn", "Rosa"}
	benchLast  = []string{"Lee", "Lovelace", "Meier", "Müller", "Nguyen", "Okafor", "Öster", "Patel", "Rossi", "Schmidt", "Smith", "Tanaka", "Ueda", "Vogel", "Wang", "Xu", "Young", "Zimmer"}
)

// growPeople makes n people with all identifiers and names, most of them behind a
// checkpoint and the last 20,000 in memory.
func (s *service) growPeople(n int) {
	s.t.Helper()
	const batch = 5000
	for from := 0; from < n; from += batch {
		var b strings.Builder
		b.WriteString(`{"events":[`)
		for i := from; i < min(n, from+batch); i++ {
			if i > from {
				b.WriteByte(',')
			}
			first, last := benchFirst[i*7%len(benchFirst)], fmt.Sprintf("%s%d", benchLast[i*11%len(benchLast)], i%997)
			fmt.Fprintf(&b, `{"event_type":"seen","user":{"email":"%s.%s%d@x.io","external_id":"u%d","phone":"+49 %d","first_name":%q,"last_name":%q,"geo":{"city":%q}}}`,
				first, last, i, i*7919%n, 1_000_000_000+i*31, first, last, []string{"Berlin", "Paris", "Rome"}[i%3])
		}
		b.WriteString(`]}`)
		if res, answer := s.send("POST", "/api/v1/events/batch", b.String(), "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret); res.StatusCode != 202 {
			s.t.Fatalf("%d %.200s", res.StatusCode, answer)
		}
		if from+batch == n-4*batch {
			if err := s.node.Checkpoint(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// threadTime is the processor time of this thread, 0 where the system does not tell.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	var use syscall.Rusage
	if syscall.Getrusage(thread, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkProfileSearch measures pages of 50 found by beginnings of all lengths: the
// handler with everything but the network. MUSTER_BENCH_PEOPLE says how many profiles.
func BenchmarkProfileSearch(b *testing.B) {
	s := newService(b, &memHistory{}, nil)
	n := benchPeople(b)
	s.growPeople(n)
	seg := s.segment("Berlin", berlin)
	s.live(seg.ID)
	rng := rand.New(rand.NewPCG(1, 1))
	begins := func(text string) string {
		r := []rune(text)
		return url.QueryEscape(string(r[:1+rng.IntN(len(r))]))
	}
	person := func() (email, id, phone, name string) {
		i := rng.IntN(n)
		first, last := benchFirst[i*7%len(benchFirst)], fmt.Sprintf("%s%d", benchLast[i*11%len(benchLast)], i%997)
		return fmt.Sprintf("%s.%s%d@x.io", first, last, i), fmt.Sprint("u", i*7919%n), fmt.Sprint("+49 ", 1_000_000_000+i*31), first + " " + last
	}
	text := func() string {
		email, id, phone, name := person()
		return []string{begins(email), begins(id), begins(phone), begins(name), begins(strings.Split(name, " ")[1])}[rng.IntN(5)]
	}
	for _, x := range []struct {
		name  string
		query func() string
	}{
		{"prefix", func() string { return "q=" + text() }},
		{"prefix-in-segment", func() string { return "segment_id=" + seg.ID + "&q=" + text() }},
		{"newest", func() string { return "" }},
		{"segment-newest", func() string { return "segment_id=" + seg.ID }},
		{"last-event", func() string { return "sort=last_event" }},
		{"rare-status", func() string { return "status=Bounced" }},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			var ctx fasthttp.RequestCtx
			var took, worked []time.Duration
			runtime.LockOSThread() // whose processor time is measured: others use the machine
			defer runtime.UnlockOSThread()
			for b.Loop() {
				query := x.query()
				begun, used := time.Now(), threadTime()
				s.call(&ctx, "GET", "/profiles/search?limit=50&"+query, "")
				took, worked = append(took, time.Since(begun)), append(worked, threadTime()-used)
			}
			for name, list := range map[string][]time.Duration{"ms": took, "cpu-ms": worked} {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "p50-"+name)
				b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "p99-"+name)
			}
		})
	}
}
