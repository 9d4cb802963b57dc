package ingest

import (
	"bufio"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/resolver"
)

// benchBody is a batch of n events of about 320 bytes, as a shop sends them.
func benchBody(n int) []byte {
	b := []byte(`{"events":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"event_type":"item_purchased","user":{"email":"customer%06d@example.com","external_id":"cust-%06d",`+
			`"first_name":"Maria","attributes":{"plan":"pro","visits":%d}},"properties":{"value":%d.95,"currency":"EUR",`+
			`"product_id":"sku-%05d","quantity":%d,"category":"garden tools"},"idempotency_key":"6f1c2b1e-7d7e-4d3c-9f5a-%012d"}`,
			i*7919%1000000, i*7919%1000000, i%50, i%90+10, i*31%100000, i%9+1, i)
	}
	return append(b, "]}"...)
}

// BenchmarkDecodeBatch100 is the way from a body to an encoded record.
func BenchmarkDecodeBatch100(b *testing.B) {
	body := benchBody(100)
	d := newDecoder(Limits{}.withDefaults())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.batch(body, eventlog.KindEvents, testNow.UnixMilli()); err != nil || d.events != 100 {
			b.Fatal(err, d.events)
		}
		d.Finish(&eventlog.Envelope{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
	b.ReportMetric(float64(len(body))/100, "bytes/event")
}

// BenchmarkFastjsonVisit parses the same body into a tree and looks at every
// field of it once: the ceiling that the design measures against.
func BenchmarkFastjsonVisit(b *testing.B) {
	body := benchBody(100)
	var p fastjson.Parser
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	fields := 0
	for b.Loop() {
		v, err := p.ParseBytes(body)
		if err != nil {
			b.Fatal(err)
		}
		fields += visit(v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
}

func visit(v *fastjson.Value) int {
	n := 1
	switch v.Type() {
	case fastjson.TypeObject:
		o, _ := v.Object()
		o.Visit(func(_ []byte, v *fastjson.Value) { n += visit(v) })
	case fastjson.TypeArray:
		a, _ := v.Array()
		for _, v := range a {
			n += visit(v)
		}
	case fastjson.TypeString:
		s, _ := v.StringBytes()
		n += len(s)
	case fastjson.TypeNumber:
		f, _ := v.Float64()
		n += int(f)
	}
	return n
}

// BenchmarkHandler is the whole chain without the network and the log: check
// the head, authenticate, decode, answer.
func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			h, err := New(submitFunc(func(out *resolver.Outcome) {
				for range n {
					out.Events = append(out.Events, resolver.EventOutcome{Status: resolver.EventAccepted})
				}
			}), testApps(), testOptions())
			if err != nil {
				b.Fatal(err)
			}
			body := benchBody(n)
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.Header.SetContentType("application/json")
			ctx.Request.Header.Set("X-App-Id", "app_1")
			ctx.Request.Header.Set("X-App-Secret", testSecret)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				ctx.Request.SetBodyRaw(body)
				ctx.Response.Reset()
				h.Batch(&ctx)
			}
			if ctx.Response.StatusCode() != 202 {
				b.Fatal(ctx.Response.String())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

// connServer serves connections in the way that is measured.
type connServer struct {
	*Server
	serve func(*Server, net.Listener) error
}

func (s connServer) Serve(ln net.Listener) error { return s.serve(s.Server, ln) }

// BenchmarkConnection is the way of requests over TCP, with the strict connection in
// front of the library and without.
func BenchmarkConnection(b *testing.B) {
	for _, n := range []int{1, 100} {
		for name, serve := range map[string]func(*Server, net.Listener) error{
			"strict":  (*Server).Serve,
			"library": func(s *Server, ln net.Listener) error { return s.Server.Serve(ln) },
		} {
			b.Run(fmt.Sprintf("events=%d/%s", n, name), func(b *testing.B) {
				opts := testOptions()
				h, err := New(submitFunc(func(out *resolver.Outcome) {
					for range n {
						out.Events = append(out.Events, resolver.EventOutcome{Status: resolver.EventAccepted})
					}
				}), testApps(), opts)
				if err != nil {
					b.Fatal(err)
				}
				ln := servertest.Listen(b)
				servertest.Serve(b, connServer{NewServer(opts, route(h)), serve}, ln)
				request := []byte(post("events/batch", string(benchBody(n))))
				b.SetBytes(int64(len(request)))
				b.ReportAllocs()
				began := cpuTime()
				b.RunParallel(func(pb *testing.PB) {
					c, err := net.Dial("tcp", ln.Addr().String())
					if err != nil {
						b.Error(err)
						return
					}
					defer c.Close()
					r := bufio.NewReader(c)
					var resp fasthttp.Response
					for pb.Next() {
						if _, err := c.Write(request); err != nil {
							b.Error(err)
							return
						}
						if err := resp.Read(r); err != nil || resp.StatusCode() != 202 {
							b.Error(resp.StatusCode(), err)
							return
						}
					}
				})
				b.ReportMetric(float64((cpuTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpuTime is what the process has used of the CPUs, which other work on the machine
// changes less than the time that passed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
