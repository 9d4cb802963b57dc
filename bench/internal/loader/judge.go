package loader

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/valyala/fastjson"
)

// Expect says what an answer must hold to count as an acknowledgement.
type Expect uint8

// What a server can be held to.
const (
	// ExpectOutcome is Muster's answer: success, the number accepted, and for
	// every event its profile.
	ExpectOutcome Expect = iota
	// ExpectCount is success and the number accepted.
	ExpectCount
	// ExpectSuccess is success alone.
	ExpectSuccess
	// ExpectTracked is the tracking API's answer to a batch all of which it took.
	ExpectTracked
)

// deepEvery is how often an answer is read entry by entry.
const deepEvery = 64

// judge decides whether answers are acknowledgements. It is used by one
// goroutine.
type judge struct {
	expect Expect
	batch  int // 0 for single events
	count  []byte
	parser fastjson.Parser
	seen   uint64
}

func newJudge(expect Expect, batch int) *judge {
	return &judge{expect: expect, batch: batch, count: []byte(`"accepted":` + strconv.Itoa(batch))}
}

// check returns nil when the answer acknowledges all events of its request.
func (j *judge) check(a Answer) error {
	j.seen++
	if j.expect == ExpectTracked {
		if a.Status != 200 || string(a.Body) != `{"success":true}` {
			return fmt.Errorf("status %d: %.200s", a.Status, a.Body)
		}
		return nil
	}
	if a.Status != 202 {
		return fmt.Errorf("status %d: %.200s", a.Status, a.Body)
	}
	if j.seen%deepEvery == 1 || !j.plain(a.Body) {
		return j.deep(a.Body)
	}
	return nil
}

// plain recognises the usual acknowledgement without parsing. False only means
// that the answer must be parsed.
func (j *judge) plain(body []byte) bool {
	if !bytes.HasPrefix(body, []byte(`{"success":true,`)) && !bytes.Equal(body, []byte(`{"success":true}`)) {
		return false
	}
	if j.batch == 0 || j.expect == ExpectSuccess {
		return true
	}
	// A key cannot occur inside a JSON string, whose quotes are escaped, so
	// this finds the member itself.
	i := bytes.Index(body, j.count)
	return i >= 0 && i+len(j.count) < len(body) && (body[i+len(j.count)] == ',' || body[i+len(j.count)] == '}')
}

// deep reads the whole answer.
func (j *judge) deep(body []byte) error {
	if j.expect == ExpectOutcome {
		_, err := Profiles(&j.parser, body, j.batch)
		return err
	}
	v, err := j.parser.ParseBytes(body)
	switch {
	case err != nil:
		return fmt.Errorf("answer is no JSON (%w): %.200s", err, body)
	case j.expect == ExpectCount && j.batch > 0:
		return checkCount(v, j.batch)
	case !v.GetBool("success"):
		return fmt.Errorf("answer without success: %.200s", body)
	}
	return nil
}

// checkCount checks that a batch was accepted as a whole.
func checkCount(v *fastjson.Value, batch int) error {
	if n := v.GetInt("accepted"); !v.GetBool("success") || n != batch || v.GetInt("total") != batch {
		return fmt.Errorf("accepted %d of %d events, sent %d: %.200s", n, v.GetInt("total"), batch, v)
	}
	return nil
}

// Profiles reads Muster's answer to a batch of so many events, 0 for a single one: all
// must be accepted. It returns the profile of each.
func Profiles(p *fastjson.Parser, body []byte, batch int) ([]string, error) {
	v, err := p.ParseBytes(body)
	if err != nil {
		return nil, fmt.Errorf("answer is no JSON (%w): %.200s", err, body)
	}
	results := []*fastjson.Value{v}
	if batch > 0 {
		if err := checkCount(v, batch); err != nil {
			return nil, err
		}
		if results = v.GetArray("results"); len(results) != batch {
			return nil, fmt.Errorf("%d results for %d events", len(results), batch)
		}
	}
	ids := make([]string, len(results))
	for i, r := range results {
		if err := checkOutcome(r); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		ids[i] = string(r.GetStringBytes("profile_id"))
	}
	return ids, nil
}

// checkOutcome checks the answer to one event: success, profile_id, no error.
func checkOutcome(v *fastjson.Value) error {
	e := v.Get("error")
	switch {
	case !v.GetBool("success"):
		return fmt.Errorf("refused: %s", e)
	case len(v.GetStringBytes("profile_id")) == 0:
		return fmt.Errorf("no profile_id in %s", v)
	case e == nil || e.Type() != fastjson.TypeNull:
		return fmt.Errorf("success with error %v", e)
	}
	return nil
}
