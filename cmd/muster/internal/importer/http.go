package importer

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/jsonscan"
)

// Server is an account of a server to import to.
type Server struct {
	Client *http.Client
	// URL is that of Surface B, such as http://127.0.0.1:8080/api/v1.
	URL              string
	AppID, AppSecret string
	TriggerFlows     bool
	// Waiting is called when rows wait for a server that refuses them or is gone, with the
	// reason; nil is not to say so.
	Waiting func(why error)
}

// httpTarget is an account of a server.
type httpTarget struct {
	Server
	scan     *jsonscan.Scanner
	body     bytes.Buffer
	answered atomic.Bool // something has answered in HTTP
}

const (
	// httpTimeout bounds one request; the server's own bound is shorter.
	httpTimeout = 2 * time.Minute
	// answerBytes bounds an answer: so many results, each with a long error.
	answerBytes = 16 << 20
)

// ToServer returns the target of a server.
func ToServer(s Server) Target {
	return &httpTarget{Server: s, scan: jsonscan.New(1<<10, maxRowBytes)}
}

// next sends a chunk without rows: its answer says where to continue, and which rows were
// refused.
func (t *httpTarget) next(ctx context.Context, file [32]byte, from uint64) (uint64, []uint32, error) {
	c := &chunk{first: from}
	a, err := t.send(ctx, file, c)
	if err != nil {
		return 0, nil, err
	}
	return a.NextRow, a.RefusedRows, nil
}

func (t *httpTarget) store(ctx context.Context, file [32]byte, c *chunk) (result, error) {
	a, err := t.send(ctx, file, c)
	var tooLarge *statusError
	if errors.As(err, &tooLarge) && tooLarge.status == http.StatusRequestEntityTooLarge {
		return t.storeParts(ctx, file, c, err)
	}
	var r result
	if err != nil {
		return r, err
	}
	r.next = a.NextRow
	if a.Error != nil {
		if a.NextRow != c.first {
			return r, nil // another import is at it: the caller finds out
		}
		return r, errors.New(*a.Error)
	}
	if len(a.Results) != c.rows() {
		return r, fmt.Errorf("the server answered %d results for %d rows", len(a.Results), c.rows())
	}
	for i, x := range a.Results {
		switch {
		case c.faults[i] == storedBefore:
		case x.Success:
			r.accepted++
		case c.faults[i] != "":
			r.refused = append(r.refused, refusedRow{i, c.faults[i]})
		default:
			r.refused = append(r.refused, refusedRow{i, x.Error})
		}
	}
	return r, nil
}

// storeParts stores a chunk that the server finds too large in two halves. A
// single row that is too large is refused.
func (t *httpTarget) storeParts(ctx context.Context, file [32]byte, c *chunk, cause error) (result, error) {
	if c.rows() == 1 {
		if c.faults[0] != "" {
			return result{}, cause
		}
		return t.store(ctx, file, &chunk{first: c.first, again: c.again, ends: []int{0}, lines: c.lines, faults: map[int]string{0: "the row is larger than the server takes"}, bytes: c.bytes})
	}
	halves := c.split()
	r, err := t.store(ctx, file, halves[0])
	if err != nil || r.next != halves[1].first && !c.again {
		return r, err
	}
	s, err := t.store(ctx, file, halves[1])
	if err != nil {
		return r, err
	}
	for _, x := range s.refused {
		r.refused = append(r.refused, refusedRow{x.place + halves[0].rows(), x.reason})
	}
	r.accepted += s.accepted
	r.next = s.next
	return r, nil
}

// importAnswer is a server's answer to an import.
type importAnswer struct {
	Success bool
	Results []struct {
		Success bool
		Error   string
	}
	NextRow     uint64   `json:"next_row"`
	RefusedRows []uint32 `json:"refused_rows"`
	Error       *string
}

type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d: %s", e.status, e.text)
}

// send posts a chunk. It tries again when the server is busy or does not answer any
// more: the state takes each row once. One that has not answered at all for answerTime is
// taken for a wrong address.
func (t *httpTarget) send(ctx context.Context, file [32]byte, c *chunk) (a importAnswer, err error) {
	t.encode(file, c)
	err = retry(ctx, t.Waiting, func() (again bool, err error) {
		a, again, err = t.post(ctx)
		return again, err
	})
	return a, err
}

func (t *httpTarget) encode(file [32]byte, c *chunk) {
	b := &t.body
	b.Reset()
	b.WriteString(`{"file":"`)
	b.WriteString(hex.EncodeToString(file[:]))
	b.WriteString(`","first_row":`)
	b.WriteString(strconv.FormatUint(c.first, 10))
	b.WriteString(`,"trigger_flows":`)
	b.WriteString(strconv.FormatBool(t.TriggerFlows))
	b.WriteString(`,"events":[`)
	for i := range c.rows() {
		if i > 0 {
			b.WriteString(",\n")
		}
		if c.faults[i] == "" {
			if fault := t.malformed(c.row(i)); fault != "" {
				c.faults[i] = fault
			}
		}
		if c.faults[i] != "" {
			b.WriteString("null") // refused, and counted as a row
			continue
		}
		b.Write(c.row(i))
	}
	b.WriteString("]}")
}

// malformed says why a row would make the whole body bad JSON.
func (t *httpTarget) malformed(text []byte) string {
	t.scan.Reset(text)
	i := t.scan.Skip(t.scan.Space(0))
	if i >= 0 {
		i = t.scan.End(i)
	}
	if i < 0 {
		return fmt.Sprintf("the row is %s; write one JSON object in each row", t.scan.Err())
	}
	return ""
}

func (t *httpTarget) post(ctx context.Context) (a importAnswer, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	res, err := t.do(ctx, cancel)
	if err != nil {
		if remedy := hopeless(err); remedy != "" {
			return a, false, fmt.Errorf("%w; %s", err, remedy)
		}
		return a, t.answered.Load(), err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerBytes))
	if err != nil {
		return a, true, err
	}
	if res.StatusCode != http.StatusAccepted {
		e := &statusError{res.StatusCode, fmt.Sprintf("%.500s", body)}
		return a, res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout, e
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, false, fmt.Errorf("the server's answer is no JSON: %w", err)
	}
	if a.Error != nil && len(a.Results) == 0 && a.NextRow == 0 {
		return a, false, errors.New(*a.Error) // bad credentials
	}
	return a, false, nil
}
