package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// firstRead is the size of a body's buffer before more of it has come: what a
// client announces costs no memory until it sends it.
const firstRead = 16 << 10

// prefetched is how much of a body with an announced length the server reads with
// the head, before the handler is called.
const prefetched = 8 << 10

// encoding is a content coding of a body.
type encoding int

const (
	plainBody encoding = iota
	gzipBody
	zstdBody
)

// checkHead refuses requests by their head alone.
func checkHead(header *fasthttp.RequestHeader) (encoding, *requestError) {
	if !header.IsPost() {
		return 0, &requestError{405, "only POST is allowed here; send the request with POST"}
	}
	if !isJSON(header.ContentType()) {
		return 0, &requestError{415, "Content-Type must be application/json; set it and send the body as JSON"}
	}
	codings := header.PeekAll(fasthttp.HeaderContentEncoding)
	coding := header.ContentEncoding()
	if len(codings) <= 1 {
		switch coding = bytes.TrimSpace(coding); {
		case len(coding) == 0 || equalFold(coding, "identity"):
			return plainBody, nil
		case equalFold(coding, "gzip"):
			return gzipBody, nil
		case equalFold(coding, "zstd"):
			return zstdBody, nil
		}
	}
	return 0, &requestError{415, "Content-Encoding must be gzip, zstd or absent; only one encoding may be used"}
}

// isJSON reports whether a Content-Type is application/json, with or without
// parameters.
func isJSON(contentType []byte) bool {
	if i := bytes.IndexByte(contentType, ';'); i >= 0 {
		contentType = contentType[:i]
	}
	return equalFold(bytes.TrimSpace(contentType), "application/json")
}

// equalFold compares ASCII without regard to case; lower is in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func (h *Handler) tooLarge() *requestError {
	return &requestError{413, fmt.Sprintf("the body is longer than %d bytes (after decompression); send the events in several requests", h.opts.BodyBytes)}
}

func (h *Handler) noMemory() *requestError {
	h.counters.noMemory.Inc()
	return errNoMemory
}

// readBody reads the body of a request, and decompresses it. The result is
// valid until the work is released.
func (h *Handler) readBody(ctx *fasthttp.RequestCtx, w *work, enc encoding) ([]byte, *requestError) {
	received, refused := h.receive(ctx, w)
	if refused != nil {
		return nil, refused
	}
	h.counters.bytesReceived.Add(len(received))
	body := received
	switch {
	case len(received) == 0:
	case enc == gzipBody:
		body, refused = h.unpackGzip(received, w)
	case enc == zstdBody:
		body, refused = h.unpackZstd(received, w)
	}
	if refused != nil {
		return nil, refused
	}
	h.counters.bytesDecoded.Add(len(body))
	return body, nil
}

// receive reads the body as it was sent.
func (h *Handler) receive(ctx *fasthttp.RequestCtx, w *work) ([]byte, *requestError) {
	body, refused := receive(ctx, w.received[:0], h.opts.BodyBytes, &w.lease, h.opts.ReadTimeout)
	w.received = body
	switch refused {
	case errTooLarge:
		refused = h.tooLarge()
	case errNoMemory:
		refused = h.noMemory()
	}
	return body, refused
}

// The ways in which receive refuses a body whatever is in it.
var (
	errTooLarge = &requestError{413, "the body is too large"}
	errNoMemory = &requestError{503, "too many bytes are in flight; send the request again later"}
	errLate     = &requestError{408, "the body did not arrive in time; send the request again"}
	errBroken   = &requestError{400, "the body ended before its announced length, or its chunks are malformed; send the request again"}
)

const (
	// bodyGrace and bodyRate are how long a body may take to come: a time for all,
	// and what its size takes at the least rate, in bytes a second.
	bodyGrace = 10 * time.Second
	bodyRate  = 64 << 10
)

// bodyTime is how long a body of n bytes may take to come, longest at most: one
// that trickles holds memory as long as it comes.
func bodyTime(n int, longest time.Duration) time.Duration {
	return min(longest, bodyGrace+time.Duration(n)*time.Second/bodyRate)
}

// receive reads a body of at most limit bytes into dst. Its bytes are taken on the
// lease before they are read. What is left of a body that is refused is for the
// server to drain.
func receive(ctx *fasthttp.RequestCtx, dst []byte, limit int, l *lease, longest time.Duration) ([]byte, *requestError) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		// The server has read it already, or there is none.
		body := ctx.Request.Body()
		switch {
		case len(body) > limit:
			return nil, errTooLarge
		case !l.need(l.held + int64(len(body))):
			return nil, errNoMemory
		}
		return body, nil
	}
	announced := ctx.Request.Header.ContentLength() // −1 for a chunked body
	if announced > limit {
		return nil, errTooLarge
	}
	size, whole := min(firstRead, limit+1), limit
	if announced >= 0 {
		size, whole = min(size, announced), announced
	}
	if whole > prefetched {
		setReadDeadline(ctx, bodyTime(whole, longest))
	}
	buf, ok := dst, true
	if kept := cap(dst); kept > size && l.need(l.held+int64(kept)) {
		size = min(kept, whole+1) // all of it is in use while the body comes
	} else {
		if kept > size {
			buf = nil
		}
		buf, ok = l.grow(buf, 0, size)
	}
	for ok {
		n, err := stream.Read(buf[len(buf):size])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, errTooLarge
		case len(buf) == announced, err == io.EOF && announced < 0:
			ctx.Request.CloseBodyStream() //nolint:errcheck // it closes nothing
			return buf, nil
		case err != nil:
			abandon(ctx)
			return buf, readError(err)
		case len(buf) == size:
			size = min(2*size, limit+1)
			if announced >= 0 {
				size = min(size, announced)
			}
			buf, ok = l.grow(buf, len(buf), size)
		}
	}
	return buf, errNoMemory
}

// setReadDeadline bounds what is read of the connection from now on; the server
// sets the deadline again for each request.
func setReadDeadline(ctx *fasthttp.RequestCtx, d time.Duration) {
	if conn := ctx.Conn(); conn != nil {
		conn.SetReadDeadline(time.Now().Add(d)) //nolint:errcheck // a broken connection is found by reading
	}
}

// readError answers a body that could not be read; most clients are gone.
func readError(err error) *requestError {
	var elsewhere *bodyError
	var timeout net.Error
	switch {
	case errors.As(err, &elsewhere):
		return elsewhere.refused
	case errors.As(err, &timeout) && timeout.Timeout():
		return errLate
	}
	return errBroken
}

// drain reads what is left of a request's body and throws it away, at most limit
// bytes within a time, so that the client gets to read the answer. The connection
// is closed if more is left.
func drain(ctx *fasthttp.RequestCtx, limit int, within time.Duration) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}
	if ctx.Request.Header.ContentLength() > limit {
		abandon(ctx)
		return
	}
	setReadDeadline(ctx, within)
	buf := drainBuffers.Get().(*[16 << 10]byte)
	defer drainBuffers.Put(buf)
	for limit >= 0 {
		n, err := stream.Read(buf[:])
		limit -= n
		if err == io.EOF {
			ctx.Request.CloseBodyStream() //nolint:errcheck // it closes nothing
			return
		}
		if err != nil {
			break
		}
	}
	abandon(ctx)
}

// abandon leaves the rest of a request's body unread and closes the connection
// behind the answer.
func abandon(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	ctx.Request.CloseBodyStream() //nolint:errcheck // it closes nothing
}

var drainBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// unpackGzip decompresses into w.unpacked.
func (h *Handler) unpackGzip(packed []byte, w *work) ([]byte, *requestError) {
	w.packed.Reset(packed)
	z, _ := h.gzips.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	defer h.gzips.Put(z)
	if err := z.Reset(&w.packed); err != nil {
		return nil, corrupt("gzip")
	}
	return h.unpack(z, w, "gzip")
}

// unpackZstd decompresses into w.unpacked. A decoder holds a window of several
// MiB, so that there are only a few of them, which requests wait for; as the
// packed body is in memory, none waits for a client.
func (h *Handler) unpackZstd(packed []byte, w *work) ([]byte, *requestError) {
	var header zstd.Header
	if err := header.Decode(packed); err != nil {
		return nil, corrupt("zstd")
	}
	switch {
	case header.HasFCS && header.FrameContentSize > uint64(h.opts.BodyBytes):
		return nil, h.tooLarge()
	case !header.SingleSegment && header.WindowSize > zstdWindow:
		return nil, badRequest("the zstd stream needs a window of more than %d bytes; compress with a lower level, without --long", zstdWindow)
	}
	z := <-h.zstds
	defer func() { h.zstds <- z }()
	w.packed.Reset(packed)
	if err := z.Reset(&w.packed); err != nil {
		return nil, corrupt("zstd")
	}
	return h.unpack(z, w, "zstd")
}

// unpack reads a decompressed body into w.unpacked.
func (h *Handler) unpack(z io.Reader, w *work, coding string) ([]byte, *requestError) {
	limit := h.opts.BodyBytes
	size := firstRead
	buf, ok := w.lease.grow(w.unpacked[:0], 0, size)
	for ok {
		n, err := z.Read(buf[len(buf):size])
		buf = buf[:len(buf)+n]
		w.unpacked = buf
		switch {
		case len(buf) > limit:
			return nil, h.tooLarge()
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, corrupt(coding)
		case len(buf) == size:
			grown := min(2*size, limit+1)
			buf, ok = w.lease.grow(buf, size, grown)
			size = grown
		}
	}
	return nil, h.noMemory()
}

func corrupt(coding string) *requestError {
	return &requestError{400, "the body is not a valid " + coding + " stream; fix the compression, or send the body without Content-Encoding"}
}

// zstdWindow is the largest window a frame may ask for, in bytes: what RFC 8878
// asks decoders to support.
const zstdWindow = 8 << 20

// newZstds returns the zstd decoders that all requests share.
func newZstds() (chan *zstd.Decoder, error) {
	n := runtime.GOMAXPROCS(0)
	zstds := make(chan *zstd.Decoder, n)
	for range n {
		z, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(1), // no goroutines
			zstd.WithDecoderMaxWindow(zstdWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, fmt.Errorf("ingest: zstd decoder: %w", err)
		}
		zstds <- z
	}
	return zstds, nil
}
