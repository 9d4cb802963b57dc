package baseline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// Kind says how much a server does with a request.
type Kind string

// The kinds of servers.
const (
	// Read only reads the body.
	Read Kind = "read"
	// Parse parses the body and visits every field.
	Parse Kind = "parse"
)

// maxBody is Muster's default body limit.
const maxBody = 8 << 20

// Serve answers requests on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, kind Kind) error {
	var handler fasthttp.RequestHandler
	switch kind {
	case Read:
		handler = handleRead
	case Parse:
		handler = handleParse
	default:
		return fmt.Errorf("kind of baseline must be %q or %q, not %q", Read, Parse, kind)
	}
	s := &fasthttp.Server{Handler: handler, MaxRequestBodySize: maxBody, NoDefaultServerHeader: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		stop, cancel := context.WithCancel(context.Background())
		cancel() // idle keep-alive connections are not waited for
		if err := s.ShutdownWithContext(stop); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return <-done
	}
}

var success = []byte(`{"success":true}`)

func handleRead(ctx *fasthttp.RequestCtx) {
	if len(ctx.PostBody()) == 0 {
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	answer(ctx, success)
}

var parsers fastjson.ParserPool

func handleParse(ctx *fasthttp.RequestCtx) {
	p := parsers.Get()
	defer parsers.Put(p)
	v, err := p.ParseBytes(ctx.PostBody())
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	if visit(v).fields == 0 {
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	events := v.Get("events")
	if events == nil {
		answer(ctx, success)
		return
	}
	n := int64(len(events.GetArray()))
	body := make([]byte, 0, 64)
	body = append(body, `{"success":true,"accepted":`...)
	body = strconv.AppendInt(body, n, 10)
	body = append(body, `,"total":`...)
	body = strconv.AppendInt(body, n, 10)
	answer(ctx, append(body, '}'))
}

func answer(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}
