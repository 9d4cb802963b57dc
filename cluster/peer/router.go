package peer

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
)

// RouterOptions configure a [Router]. All are required.
type RouterOptions struct {
	// Partition is the partition that a request is about; ok is false where it is
	// about none, so that any node answers it.
	Partition func(rc *fasthttp.RequestCtx) (partition int, ok bool)
	// Handler answers requests on this node.
	Handler fasthttp.RequestHandler
	// Refuse answers a request that comes to no handler in the form it expects.
	Refuse func(rc *fasthttp.RequestCtx, status int, text string)
}

// Router hands each request to the node that owns what it is about.
type Router struct {
	peers *Peers
	opts  RouterOptions
	// memory is what bodies of requests are taken from that go to other nodes: a
	// part, so that there is room for those that are answered here.
	memory   *ingest.Memory
	draining chan struct{} // closed by Drain
}

// NewRouter returns a router.
func NewRouter(p *Peers, opts RouterOptions) *Router {
	return &Router{peers: p, opts: opts, memory: p.opts.Memory.Part(2), draining: make(chan struct{})}
}

// Drain ends the streams of live events that come from other nodes. It is called
// once.
func (r *Router) Drain() { close(r.draining) }

// Handle answers a client's request.
func (r *Router) Handle(rc *fasthttp.RequestCtx) {
	partition, ok := r.opts.Partition(rc)
	if !ok {
		r.opts.Handler(rc)
		return
	}
	if node := r.peers.node.Load(); node != nil && node.Owns(partition) {
		r.here(rc, node, partition)
		return
	}
	r.forward(rc, partition)
}

// owned answers a request that another node has forwarded.
func (r *Router) owned(rc *fasthttp.RequestCtx) {
	partition, ok := r.opts.Partition(rc)
	node := r.peers.node.Load()
	if !ok || node == nil || !node.Owns(partition) {
		turnAway(rc)
		return
	}
	r.here(rc, node, partition)
}

const (
	textMoving  = "the account is moving between nodes; nothing was changed, send the request again"
	textUnknown = "the node that answers for the account was lost; whether the request was carried out is not known. Send it again: events with the same idempotency_key, a campaign as it is, it continues where it stood; of a push message or a single e-mail look first whether it was sent"
)

// here answers a request on this node. An account whose partition left meanwhile
// looks to the handlers as if it had never been.
func (r *Router) here(rc *fasthttp.RequestCtx, node Node, partition int) {
	r.opts.Handler(rc)
	if status := rc.Response.StatusCode(); status >= 400 && status < 500 && !node.Owns(partition) {
		rc.Response.Reset()
		r.unavailable(rc, textMoving)
	}
}

func (r *Router) unavailable(rc *fasthttp.RequestCtx, text string) {
	r.opts.Refuse(rc, http.StatusServiceUnavailable, text)
	rc.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
}

// HeadRoom is how many bytes of head the servers of nodes must take of each other
// beyond what clients may send: the address with the prefix, and our headers.
const HeadRoom = 1 << 10

// forward hands a request to the owner.
func (r *Router) forward(rc *fasthttp.RequestCtx, partition int) {
	p := r.peers
	body, err := ingest.ReceiveBody(rc, r.memory, p.opts.BodyBytes)
	fault := ingest.FaultOf(err)
	if err != nil && fault == "" {
		r.unavailable(rc, err.Error())
		return
	}
	p.forwarded.Inc()
	here := func() attempt {
		if !ingest.FailBody(rc, fault) {
			rc.Request.SetBodyRaw(body)
		}
		r.here(rc, p.node.Load(), partition)
		return over
	}
	there := func(addr string) attempt { return r.send(rc, addr, body, fault) }
	if err := p.atOwner(p.ctx, partition, here, there); err != nil {
		p.opts.Logger.Warn("a request found no owner", "err", err)
		r.unavailable(rc, textMoving)
	}
}

// hopByHop are the headers that concern one connection alone.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	headerSigned, headerClient, headerBody, headerAnswered, headerTurnedAway, headerSession, headerWhole, headerAuthenticated,
}

// send forwards a request to a node and answers with what comes back. If the body
// could not be read, the node gets the reason instead: it may refuse the request
// for something else, and has its own words for it.
func (r *Router) send(rc *fasthttp.RequestCtx, addr string, body []byte, fault ingest.BodyFault) attempt {
	to := r.peers.conns.to(addr)
	if to == nil {
		return again
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	rc.Request.Header.CopyTo(&req.Header)
	for _, name := range hopByHop {
		req.Header.Del(name)
	}
	uri := append([]byte(forwardPath), rc.URI().PathOriginal()...)
	if query := rc.URI().QueryString(); len(query) > 0 {
		uri = append(append(uri, '?'), query...)
	}
	req.SetRequestURIBytes(uri)
	req.UseHostHeader = true
	if len(req.Header.Host()) == 0 {
		req.Header.SetHost(addr)
	}
	c := call{method: string(req.Header.Method()), uri: string(uri), client: rc.RemoteAddr().String(), body: string(fault)}
	req.Header.Set(headerClient, c.client)
	if fault != "" {
		req.Header.Set(headerBody, c.body)
		body = nil
	}
	req.Header.SetContentLength(len(body))
	req.SetBodyRaw(body)

	err := r.peers.do(to, c, req, resp)
	switch {
	case r.peers.turnedAway(resp, err):
		discard(resp)
		return again
	case err != nil:
		fasthttp.ReleaseResponse(resp)
		r.peers.opts.Logger.Warn("a request was lost on its way", "node", addr, "err", err)
		r.unavailable(rc, textUnknown)
	case len(resp.Header.Peek(headerAnswered)) == 0:
		// It did not come to the handlers.
		r.peers.reportRefused(addr, resp.StatusCode())
		discard(resp)
		return again
	default:
		if len(resp.Header.Peek(headerAuthenticated)) > 0 {
			ingest.Authenticated(rc)
		}
		r.pass(rc, resp)
	}
	return over
}

// discard drops an answer whose body is not wanted.
func discard(resp *fasthttp.Response) {
	resp.SetConnectionClose() // the body may not be read to its end
	resp.CloseBodyStream()    //nolint:errcheck // nothing of it is used
	fasthttp.ReleaseResponse(resp)
}

// pass answers with another node's answer.
func (r *Router) pass(rc *fasthttp.RequestCtx, resp *fasthttp.Response) {
	length, ends := resp.Header.ContentLength(), rc.Response.ConnectionClose() // the request was not read to its end
	resp.Header.SetNoDefaultContentType(true)                                  // the owner gave it where there is one
	resp.Header.CopyTo(&rc.Response.Header)
	rc.Response.Header.ResetConnectionClose()
	if ends {
		rc.SetConnectionClose()
	}
	for _, name := range hopByHop {
		rc.Response.Header.Del(name)
	}
	b := &passing{resp: resp, left: length}
	switch stream := resp.BodyStream(); {
	case stream == nil:
		b.left = 0
		b.Close() // there is nothing to close
	case length >= 0 && length <= wholeBytes: // it is here already
		body := make([]byte, length)
		if _, err := io.ReadFull(b, body); err != nil {
			rc.SetConnectionClose() // it cannot be: the client has read that many
		}
		rc.Response.SetBodyRaw(body)
		b.Close() // a connection that cannot be kept is closed
	case length < 0 && string(resp.Header.ContentType()) == eventStream:
		rc.Response.ImmediateHeaderFlush = true
		rc.Response.SetBodyStream(r.guard(r.newLive(b, rc.Conn())), length)
	default:
		if length < 0 {
			b.conn = rc.Conn()
			rc.Response.ImmediateHeaderFlush = true
		}
		rc.Response.SetBodyStream(r.guard(b), length)
	}
}

// guard is a body that does not end the process when it panics.
func (r *Router) guard(body io.ReadCloser) io.ReadCloser {
	return ingest.GuardStream(r.peers.opts.Metrics, r.peers.opts.Logger, "another node's answer", body)
}

// passWriteTime is how long a client may take to read a piece of an answer whose
// end is not known.
const passWriteTime = 15 * time.Second

// passing is the body of another node's answer on its way to the client.
type passing struct {
	resp *fasthttp.Response
	conn net.Conn // the client's, of an answer without an announced end
	left int      // bytes to come, negative when that is not known
	eof  bool
}

// Read implements [io.Reader].
func (b *passing) Read(to []byte) (int, error) {
	n, err := b.resp.BodyStream().Read(to)
	if b.left >= 0 {
		b.left -= n
	} else if errors.Is(err, io.EOF) && len(b.resp.Header.Peek(headerWhole)) == 0 {
		err = io.ErrUnexpectedEOF // so that the reader knows that it is cut off
	}
	b.eof = b.eof || errors.Is(err, io.EOF)
	if err == nil && b.conn != nil {
		err = b.conn.SetWriteDeadline(time.Now().Add(passWriteTime))
	}
	return n, err
}

// Close implements [io.Closer].
func (b *passing) Close() error {
	if b.resp == nil {
		return nil
	}
	if !b.eof && b.left != 0 {
		b.resp.SetConnectionClose() // what was not read is in the way of the next answer
	}
	err := b.resp.CloseBodyStream()
	fasthttp.ReleaseResponse(b.resp)
	b.resp = nil
	return err
}
