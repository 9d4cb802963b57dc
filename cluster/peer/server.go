package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/resolver"
)

// Server answers the calls of other nodes.
type Server struct {
	peers *Peers
	// notFound answers who does not know the secret.
	notFound fasthttp.RequestHandler
	open     atomic.Pointer[opened]
	replays  replays
}

// opened is what a server needs that is there only once the service is.
type opened struct {
	router *Router
	answer Answer
}

// NewServer returns a server; until it is opened it turns away what it is asked,
// but for commands.
func NewServer(p *Peers, notFound fasthttp.RequestHandler) *Server {
	return &Server{peers: p, notFound: notFound}
}

// Open lets clients' requests and questions in.
func (s *Server) Open(router *Router, answer Answer) { s.open.Store(&opened{router, answer}) }

// Is reports whether a request is a call between nodes.
func Is(rc *fasthttp.RequestCtx) bool {
	return bytes.HasPrefix(rc.Request.Header.RequestURI(), []byte(Prefix))
}

// Handle answers a call.
func (s *Server) Handle(rc *fasthttp.RequestCtx) {
	h := &rc.Request.Header
	uri := string(h.RequestURI())
	c := call{method: string(h.Method()), uri: uri, client: string(h.Peek(headerClient)), body: string(h.Peek(headerBody))}
	forwarded := strings.HasPrefix(uri, forwardPath+"/")
	now := s.peers.opts.Now()
	stamp, ok := s.peers.opts.Secret.verify(c, string(h.Peek(headerSigned)), now)
	switch {
	case !ok, !forwarded && (c.body == "" || !h.IsPost()):
		s.notFound(rc)
		return
	case stamp.to != s.peers.session:
		turnAway(rc)
		rc.Response.Header.Set(headerSession, s.peers.session)
		return
	case !s.replays.fresh(stamp.from, stamp.number, now):
		s.repeated(rc, uri, forwarded)
		rc.Response.Header.Set(headerAnswered, "1")
		return
	}
	ingest.Authenticated(rc)
	defer s.recovering(rc, forwarded)
	for _, name := range []string{headerSigned, headerClient, headerBody} {
		h.Del(name)
	}
	partition, isCommand := strings.CutPrefix(uri, commandPath)
	name, isAsk := strings.CutPrefix(uri, askPath)
	switch {
	case forwarded:
		s.forward(rc, uri[len(forwardPath):], c)
	case isCommand:
		s.command(rc, partition, c.body)
	case isAsk:
		s.ask(rc, name, c.body)
	default:
		s.notFound(rc)
		return
	}
	rc.Response.Header.Set(headerAnswered, "1")
}

var errPanicked = errors.New("the node failed to answer the call; its log says why")

// recovering is deferred around a call that has come to the handlers. What panics is
// answered as what came to them, so that the caller does not repeat it.
func (s *Server) recovering(rc *fasthttp.RequestCtx, forwarded bool) {
	v := recover()
	if v == nil {
		return
	}
	panics.Report(s.peers.opts.Metrics, s.peers.opts.Logger, "a call of another node", v)
	rc.Response.Reset()
	if o := s.open.Load(); o != nil && forwarded {
		o.router.opts.Refuse(rc, http.StatusInternalServerError, "the server failed to answer the request; its log says why")
	} else {
		fault(rc, errPanicked)
	}
	rc.SetConnectionClose() // the body may not be read to its end
	rc.Response.Header.Set(headerAnswered, "1")
}

// repeated answers a call that came before, or may have. It may have been carried
// out then, so the caller must not take it for one that was refused.
func (s *Server) repeated(rc *fasthttp.RequestCtx, uri string, forwarded bool) {
	if o := s.open.Load(); o != nil && forwarded {
		rc.Request.SetRequestURI(uri[len(forwardPath):])
		o.router.unavailable(rc, textUnknown)
		return
	}
	rc.SetStatusCode(http.StatusServiceUnavailable)
	rc.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	rc.SetContentType("text/plain; charset=utf-8")
	rc.SetBodyString("this call came before\n")
}

// turnAway reports that this node does not own what it is asked for and did nothing.
func turnAway(rc *fasthttp.RequestCtx) {
	rc.SetStatusCode(http.StatusMisdirectedRequest)
	rc.Response.Header.Set(headerTurnedAway, "not-owner")
	rc.SetContentType("text/plain; charset=utf-8")
	rc.SetBodyString("this node does not serve the partition\n")
}

// forward answers a client's request that came to another node.
func (s *Server) forward(rc *fasthttp.RequestCtx, uri string, c call) {
	o := s.open.Load()
	if o == nil {
		turnAway(rc)
		return
	}
	rc.Request.SetRequestURI(uri)
	if addr, err := netip.ParseAddrPort(c.client); err == nil {
		rc.SetRemoteAddr(net.TCPAddrFromAddrPort(addr))
	}
	if c.body != "" && !ingest.FailBody(rc, ingest.BodyFault(c.body)) {
		rc.SetStatusCode(http.StatusBadRequest) // of a node that knows more faults than this one
		rc.SetBodyString("the body could not be read: " + c.body)
		return
	}
	ingest.TakeAuthenticated(rc) // of the call between nodes
	o.router.owned(rc)
	if ingest.TakeAuthenticated(rc) {
		rc.Response.Header.Set(headerAuthenticated, "1")
	}
	if h := &rc.Response.Header; rc.Response.IsBodyStream() && h.ContentLength() < 0 {
		h.Set(headerWhole, "1")
		h.SetTrailer(headerWhole) //nolint:errcheck // it is no name that may not be one
	}
}

// body reads the body that was signed. It answers itself when that fails.
func (s *Server) body(rc *fasthttp.RequestCtx, limit int, hash string) ([]byte, bool) {
	b, err := ingest.ReadBody(rc, s.peers.opts.Memory, limit)
	switch {
	case errors.Is(err, ingest.ErrNoMemory):
		fault(rc, resolver.ErrOverloaded)
	case errors.Is(err, ingest.ErrBodyTooLarge):
		rc.SetStatusCode(http.StatusRequestEntityTooLarge)
		rc.SetBodyString(err.Error())
	case err != nil:
		rc.SetStatusCode(http.StatusBadRequest)
		rc.SetBodyString(err.Error())
	case bodyHash(b) != hash:
		s.notFound(rc)
	default:
		return b, true
	}
	return nil, false
}

// command carries out a record that another node made.
func (s *Server) command(rc *fasthttp.RequestCtx, partition, hash string) {
	number, err := strconv.Atoi(partition)
	node := s.peers.node.Load()
	if err != nil {
		s.notFound(rc)
		return
	}
	if node == nil || !node.Owns(number) {
		turnAway(rc)
		return
	}
	rec, ok := s.body(rc, s.peers.opts.RecordBytes, hash)
	if !ok {
		return
	}
	ctx, cancel := s.peers.bound(context.Background())
	defer cancel()
	reply, err := node.SubmitCommand(ctx, number, rec)
	if err != nil {
		fault(rc, err)
		return
	}
	rc.SetContentType("application/octet-stream")
	rc.SetBody(reply)
}

// maxQuestionBytes bounds a question.
const maxQuestionBytes = 64 << 10

// ask answers a question for partitions that are here.
func (s *Server) ask(rc *fasthttp.RequestCtx, name, hash string) {
	o := s.open.Load()
	if o == nil {
		turnAway(rc)
		return
	}
	b, ok := s.body(rc, maxQuestionBytes, hash)
	if !ok {
		return
	}
	var q question
	if err := json.Unmarshal(b, &q); err != nil {
		rc.SetStatusCode(http.StatusBadRequest)
		rc.SetBodyString(err.Error())
		return
	}
	ctx, cancel := s.peers.bound(context.Background())
	defer cancel()
	reply, err := s.peers.answerHere(ctx, o.answer, name, q)
	if err != nil {
		fault(rc, err)
		return
	}
	rc.SetContentType("application/json")
	rc.SetBody(reply)
}

// fault answers an error so that faultOf makes the same of it.
func fault(rc *fasthttp.RequestCtx, err error) {
	var r *resolver.Refusal
	switch {
	case errors.Is(err, resolver.ErrNotOwner):
		turnAway(rc)
		return
	case errors.As(err, &r):
		b, err := json.Marshal(refusal{r.Code, r.Field, r.Message})
		if err == nil {
			rc.SetStatusCode(http.StatusConflict)
			rc.Response.Header.Set(headerFault, faultRefused)
			rc.SetBody(b)
			return
		}
	case errors.Is(err, resolver.ErrOverloaded), errors.Is(err, eventlog.ErrQueueFull):
		rc.Response.Header.Set(headerFault, faultOverloaded)
	default:
		rc.Response.Header.Set(headerFault, faultUnavailable)
	}
	rc.SetStatusCode(http.StatusServiceUnavailable)
	rc.SetBodyString(err.Error())
}
