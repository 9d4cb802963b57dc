package muster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	batchHead, batchTail = `{"events":[`, `]}`
	batchOverhead        = len(batchHead) + len(batchTail)
	// compressFrom is the size of a request in bytes from which gzip makes it smaller by
	// enough to be worth its time.
	compressFrom = 1 << 10
	// maxAnswer bounds an answer in bytes: the results of 10,000 events with a text each.
	maxAnswer = 32 << 20
	// maxMessage bounds the text that is kept of an answer that is not Muster's.
	maxMessage = 512
)

// result is the outcome of one event.
type result struct {
	Success bool
	Error   string
	Warning string
}

// failure is an attempt without results.
type failure struct {
	err       error
	retry     bool          // another attempt may help
	divide    bool          // fewer events may help
	uncertain bool          // the events may have been recorded
	after     time.Duration // the server asks to wait so long; 0: it does not say
}

// packer makes the bodies of requests, in buffers that it keeps.
type packer struct {
	text, packed bytes.Buffer
	gzip         *gzip.Writer
}

// pack returns the body of a request and its Content-Encoding. The body holds until the
// next call.
func (p *packer) pack(batch []queued, compress bool) (body []byte, encoding string) {
	p.text.Reset()
	p.text.WriteString(batchHead)
	for i, q := range batch {
		if i > 0 {
			p.text.WriteByte(',')
		}
		p.text.Write(q.text)
	}
	p.text.WriteString(batchTail)
	if !compress || p.text.Len() < compressFrom {
		return p.text.Bytes(), ""
	}
	p.packed.Reset()
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	}
	p.gzip.Reset(&p.packed)
	_, _ = p.gzip.Write(p.text.Bytes()) // writing to memory does not fail
	p.gzip.Close()
	return p.packed.Bytes(), "gzip"
}

// post makes one attempt to send a batch.
func (c *Client) post(batch []queued) ([]result, *failure) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.RequestTimeout)
	defer cancel()
	body, encoding := c.packer.pack(batch, !c.cfg.NoCompression)
	// A transport may read the body of a request that is over: the buffer is used again.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(bytes.Clone(body)))
	if err != nil {
		return nil, &failure{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "muster-go")
	req.Header.Set("X-App-Id", c.cfg.AppID)
	req.Header.Set("X-App-Secret", c.cfg.AppSecret)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	res, err := c.cfg.HTTPClient.Do(req)
	if err != nil {
		var op *net.OpError
		dialing := errors.As(err, &op) && op.Op == "dial"
		return nil, &failure{err: err, retry: true, uncertain: !dialing}
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode == http.StatusAccepted {
		if err != nil {
			return nil, &failure{err: fmt.Errorf("reading the answer: %w", err), retry: true, uncertain: true}
		}
		return readResults(answer, len(batch))
	}
	return nil, c.statusFailure(res, answer)
}

// readResults reads the answer to a batch of n events.
func readResults(answer []byte, n int) ([]result, *failure) {
	var a struct {
		Results []result
		Error   string
	}
	err := json.Unmarshal(answer, &a)
	switch {
	case err == nil && len(a.Results) == n:
		return a.Results, nil
	case err == nil && len(a.Results) == 0 && a.Error != "": // the credentials do not hold
		return nil, &failure{err: &RefusedError{StatusCode: http.StatusAccepted, Message: a.Error}}
	case err == nil:
		err = fmt.Errorf("it has %d results for %d events", len(a.Results), n)
	}
	// Something between the server and this process, which another attempt may get past.
	return nil, &failure{err: fmt.Errorf("the answer is not that of a Muster server; check Config.URL: %w", err), retry: true, uncertain: true}
}

// statusFailure classifies an answer whose status is not 202.
func (c *Client) statusFailure(res *http.Response, answer []byte) *failure {
	status := res.StatusCode
	refused := &RefusedError{StatusCode: status, Message: message(answer)}
	switch {
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		return &failure{err: refused, divide: true}
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= 500 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported:
		err := fmt.Errorf("the server answered %d: %s", status, refused.Message)
		return &failure{err: err, retry: true, uncertain: status >= 500, after: retryAfter(res.Header.Get("Retry-After"), c.cfg.clock.Now())}
	case status >= 300 && status < 400:
		refused.Message = fmt.Sprintf("it redirects to %q; set Config.URL to where the server is", res.Header.Get("Location"))
	}
	return &failure{err: refused}
}

// message returns the text of an answer: its error if it is Muster's, or else its
// beginning.
func message(answer []byte) string {
	var a struct{ Error, Message string }
	if json.Unmarshal(answer, &a) == nil && a.Error+a.Message != "" {
		return a.Error + a.Message
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(answer[:min(len(answer), maxMessage)]), "")), " ")
	if text == "" {
		return "the answer has no text"
	}
	return text
}

// retryAfter reads a header that has seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
