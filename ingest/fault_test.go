package ingest

import (
	"errors"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestBodyFaults: a fault that a body has at one node is the same at the next.
func TestBodyFaults(t *testing.T) {
	t.Parallel()
	memory := NewMemory(1 << 20)
	for _, f := range []BodyFault{BodyTooLarge, BodyLate, BodyBroken} {
		rc := &fasthttp.RequestCtx{}
		rc.Request.SetBodyString("what came")
		if !FailBody(rc, f) {
			t.Fatalf("%s is no fault", f)
		}
		body, err := ReceiveBody(rc, memory, 1<<10)
		if FaultOf(err) != f || len(body) > 0 {
			t.Errorf("%s: %q %v, which is %q", f, body, err, FaultOf(err))
		}
		if !rc.Response.ConnectionClose() {
			t.Errorf("%s: the connection is to be used again", f)
		}
	}
	rc := &fasthttp.RequestCtx{}
	rc.Request.SetBodyString("what came")
	for _, f := range []BodyFault{"", "unheard of"} {
		if FailBody(rc, f) {
			t.Errorf("%q is a fault", f)
		}
	}
	if body, err := ReceiveBody(rc, memory, 1<<10); string(body) != "what came" || err != nil {
		t.Errorf("%q %v", body, err)
	}
	for _, err := range []error{nil, ErrNoMemory, errors.New("x")} {
		if f := FaultOf(err); f != "" {
			t.Errorf("%v is %q", err, f)
		}
	}
}
