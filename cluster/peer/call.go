package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

const (
	// headerTurnedAway marks a 421 of a node that is not the owner.
	headerTurnedAway = "Muster-Turned-Away"
	// headerSession is the session of the process that refused a call since it was
	// meant for another process, or came before: the next call must be signed for
	// it.
	headerSession = "Muster-Session"
	// headerAnswered marks what a node answers to a call of its cluster. What has
	// no mark comes from one that starts, stops, or knows another secret: nothing
	// was done.
	headerAnswered = "Muster-Answered"
	// headerWhole is the trailer of an answer in chunks that came to its end. What
	// broke off between two chunks looks the same to fasthttp otherwise.
	headerWhole = "Muster-Whole"
	// headerAuthenticated marks the answer to a client's request whose credentials
	// were right, for the node that has the client's connection.
	headerAuthenticated = "Muster-Authenticated"
	// headerFault says which error a 503 stands for.
	headerFault = "Muster-Fault"

	faultOverloaded  = "overloaded"
	faultUnavailable = "unavailable"
	faultRefused     = "refused"
)

// maxAnswerBytes bounds the answer to a command or a question.
const maxAnswerBytes = 64 << 20

// refusal is a *resolver.Refusal on the wire.
type refusal struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

var _ node.Remote = (*Peers)(nil)

// Command implements [node.Remote].
func (p *Peers) Command(ctx context.Context, partition int, rec []byte) (reply []byte, err error) {
	p.commands.Inc()
	ctx, cancel := p.bound(ctx)
	defer cancel()
	here := func() attempt {
		reply, err = p.node.Load().SubmitCommand(ctx, partition, rec)
		return whether(err)
	}
	there := func(addr string) attempt {
		reply, err = p.post(ctx, addr, commandPath+strconv.Itoa(partition), rec)
		return whether(err)
	}
	if none := p.atOwner(ctx, partition, here, there); none != nil {
		return nil, none
	}
	return reply, err
}

// whether a call that ended so is to be made again.
func whether(err error) attempt {
	if errors.Is(err, resolver.ErrNotOwner) {
		return again
	}
	return over
}

func (p *Peers) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.opts.CallTimeout)
}

// post makes a call of our own and returns the answer's body. The error wraps
// [resolver.ErrNotOwner] when nothing was done, or is what the other node
// answered.
func (p *Peers) post(ctx context.Context, addr, path string, body []byte) ([]byte, error) {
	to := p.conns.to(addr)
	if to == nil {
		return nil, fmt.Errorf("%w: the service stops", resolver.ErrNotOwner)
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	c := call{method: http.MethodPost, uri: path, body: bodyHash(body)}
	req.Header.SetMethod(c.method)
	req.Header.SetHost(addr)
	req.SetRequestURI(path)
	req.UseHostHeader = true
	req.Header.Set(headerBody, c.body)
	req.SetBodyRaw(body)
	if end, ok := ctx.Deadline(); ok {
		// The answer may say that there was no time.
		req.SetTimeout(time.Until(end) + time.Second)
	}
	err := p.do(to, c, req, resp)
	if p.turnedAway(resp, err) {
		return nil, fmt.Errorf("%s: %w", addr, resolver.ErrNotOwner)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not answer: %w", resolver.ErrUnavailable, addr, err)
	}
	answer, err := wholeBody(resp)
	if err != nil {
		return nil, fmt.Errorf("%w: the answer of %s: %w", resolver.ErrUnavailable, addr, err)
	}
	switch marked := len(resp.Header.Peek(headerAnswered)) > 0; {
	case !marked && resp.StatusCode() != http.StatusNotFound:
		return nil, fmt.Errorf("%s answered %d: %w", addr, resp.StatusCode(), resolver.ErrNotOwner)
	case marked && resp.StatusCode() == http.StatusOK:
		return answer, nil
	}
	return nil, faultOf(addr, resp, answer)
}

// do signs a call and makes it; again if the node is another process than was known,
// or none was.
func (p *Peers) do(to *conn, c call, req *fasthttp.Request, resp *fasthttp.Response) error {
	for try := 0; ; try++ {
		t := stamp{ms: p.opts.Now().UnixMilli(), from: p.session, number: p.calls.Add(1)}
		if known := to.session.Load(); known != nil {
			t.to = *known
		}
		req.Header.Set(headerSigned, p.opts.Secret.sign(c, t))
		if err := to.do(req, resp); err != nil || resp.StatusCode() != http.StatusMisdirectedRequest {
			return err
		}
		session := string(resp.Header.Peek(headerSession))
		if session == "" || session == t.to || len(session) > maxSessionBytes {
			return nil // it has another reason
		}
		to.session.Store(&session)
		if try > 0 {
			return nil
		}
		resp.CloseBodyStream() //nolint:errcheck // a connection that cannot be kept is closed
		resp.Reset()
	}
}

// maxSessionBytes bounds what a node calls itself.
const maxSessionBytes = 64

// wholeBody reads the body of an answer.
func wholeBody(resp *fasthttp.Response) ([]byte, error) {
	stream := resp.BodyStream()
	if stream == nil {
		return append([]byte{}, resp.Body()...), nil
	}
	b, err := io.ReadAll(io.LimitReader(stream, maxAnswerBytes+1))
	switch {
	case err != nil:
		resp.SetConnectionClose()
	case len(b) > maxAnswerBytes:
		resp.SetConnectionClose() // the rest is not read
		err = fmt.Errorf("it has more than %d bytes", maxAnswerBytes)
	}
	return b, errors.Join(err, resp.CloseBodyStream())
}

// faultOf is the error that an answer stands for.
func faultOf(addr string, resp *fasthttp.Response, answer []byte) error {
	switch fault := string(resp.Header.Peek(headerFault)); {
	case fault == faultRefused:
		var r refusal
		if err := json.Unmarshal(answer, &r); err != nil {
			return fmt.Errorf("%w: the refusal of %s: %w", resolver.ErrUnavailable, addr, err)
		}
		return &resolver.Refusal{Code: r.Code, Field: r.Field, Message: r.Message}
	case fault == faultOverloaded:
		return fmt.Errorf("%s: %w", addr, resolver.ErrOverloaded)
	case resp.StatusCode() == http.StatusNotFound:
		return fmt.Errorf("%w: %s does not take this node for one of its cluster: give both the same secret, and set their clocks right", resolver.ErrUnavailable, addr)
	}
	return fmt.Errorf("%w: %s answered %d: %s", resolver.ErrUnavailable, addr, resp.StatusCode(), answer)
}
