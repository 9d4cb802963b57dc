package trackingapi

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
)

// body reads a request's body of at most limit bytes and unpacks it. The content type is
// ignored: SDKs set it to other values than application/json.
func (h *Handler) body(ctx *fasthttp.RequestCtx, memory *ingest.Memory, limit int) ([]byte, *failure) {
	packed, err := ingest.ReceiveBody(ctx, memory, limit)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, tooLarge("the body is longer than %d bytes; send smaller batches", limit)
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, &failure{status: 503, code: codeOverloaded, message: err.Error()}
	case ingest.FaultOf(err) == ingest.BodyLate:
		return nil, &failure{status: 408, code: codeRequestNotValid, message: err.Error()}
	case err != nil:
		return nil, &failure{status: 400, code: codeRequestNotValid, message: err.Error()}
	}
	if coding := ctx.Request.Header.ContentEncoding(); !isGzip(packed) {
		if len(coding) == 0 || bytes.EqualFold(coding, []byte("identity")) || bytes.EqualFold(coding, []byte("gzip")) {
			return packed, nil // one that says gzip and is not is JSON, or refused as none
		}
		return nil, &failure{status: 400, code: codeRequestNotValid, message: "Content-Encoding is not understood; send JSON as it is, or packed by gzip"}
	}
	return unpack(ctx, memory, packed, limit)
}

// isGzip goes by the first bytes, with which no JSON begins: some SDKs pack and do not say so.
func isGzip(body []byte) bool { return len(body) > 2 && body[0] == 0x1f && body[1] == 0x8b }

// gzips has readers that no request uses.
var gzips sync.Pool // *gzip.Reader

// unpack decompresses a body; the result has at most limit bytes.
func unpack(ctx *fasthttp.RequestCtx, memory *ingest.Memory, packed []byte, limit int) ([]byte, *failure) {
	z, _ := gzips.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	defer gzips.Put(z)
	if err := z.Reset(bytes.NewReader(packed)); err != nil {
		return nil, errCorrupt
	}
	size := min(limit+1, max(4<<10, 4*len(packed)))
	if !memory.Hold(ctx, size) {
		return nil, errNoMemory
	}
	out := make([]byte, 0, size)
	for {
		n, err := z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > limit:
			return nil, tooLarge("the body is longer than %d bytes when it is unpacked; send smaller batches", limit)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, errCorrupt
		case len(out) == cap(out):
			grown := min(limit+1, 2*cap(out))
			if !memory.Hold(ctx, grown-cap(out)) {
				return nil, errNoMemory
			}
			out = append(make([]byte, 0, grown), out...)
		}
	}
}
