package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// firstByteTime bounds how long an export waits until its answer begins: the server
	// may have to read a lot first. idleTime bounds how long it then waits for more of it.
	firstByteTime = 2 * time.Minute
	idleTime      = time.Minute
)

// bounded ends a request whose server stops answering. An answer may take as long as
// it likes while more of it comes, and so may its reader.
type bounded struct {
	http.RoundTripper
	first, idle time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	late := fmt.Errorf("no answer within %s", b.first)
	timer := time.AfterFunc(b.first, func() { cancel(late) })
	res, err := b.RoundTripper.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err == nil && errors.Is(context.Cause(ctx), late) {
		err = errors.Join(late, res.Body.Close())
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), late) {
			err = late
		}
		cancel(nil)
		return nil, err
	}
	stopped := fmt.Errorf("%s://%s sent nothing for %s in the middle of its answer, so what was written is not complete; look at the server's log, and try again", req.URL.Scheme, req.URL.Host, b.idle)
	res.Body = &boundedBody{ReadCloser: res.Body, idle: b.idle, ctx: ctx, cancel: cancel, stopped: stopped}
	return res, nil
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport.
func (b *bounded) CloseIdleConnections() {
	if t, is := b.RoundTripper.(interface{ CloseIdleConnections() }); is {
		t.CloseIdleConnections()
	}
}

// boundedBody bounds each read.
type boundedBody struct {
	io.ReadCloser
	idle    time.Duration
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopped error
}

func (b *boundedBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.idle, func() { b.cancel(b.stopped) })
	n, err := b.ReadCloser.Read(p)
	timer.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), b.stopped) {
		err = b.stopped
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
