package keyapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/resolver/campaigns"
)

// FuzzBodies: a body is read into the fields of every kind of request, or refused
// with a failure that is one of the caller's.
func FuzzBodies(f *testing.F) {
	for name, list := range examples {
		if strings.Contains(name, " /api/v1") || strings.Contains(name, " /v1") {
			for _, x := range list {
				f.Add([]byte(x.body))
			}
		}
	}
	for _, v := range values {
		if len(v) < 400 {
			f.Add([]byte(`{"channel":` + v + `,"type":` + v + `,"email":` + v + `,"list_id":` + v + `,"batch_size":` + v + `,"delay_between_batches":` + v + `,"date":` + v + `}`))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) == 0 {
			return // decode answers that itself
		}
		refused := func(err error) {
			var fault *keycall.Failure
			if err != nil && (!errors.As(err, &fault) || fault.Message == "") {
				t.Errorf("%q: %v", body, err)
			}
		}
		var contact struct {
			contactFields
			Attributes json.RawMessage `json:"attributes"`
		}
		refused(keycall.DecodeObject(body, &contact))
		var fields campaignFields
		if err := keycall.DecodeObject(body, &fields); err != nil {
			refused(err)
		} else {
			var x campaigns.Campaign
			err := fields.apply(&x)
			refused(err)
			if err == nil && (x.Name == "" || x.Channel < 1 || x.Channel > 2 || x.Type < 0 || x.Type > 4 || x.Channel == 2 && (x.Type == 0 || x.Date == "")) {
				t.Errorf("%q is taken for %+v", body, x)
			}
		}
		var send sendFields
		if err := keycall.DecodeObject(body, &send); err != nil {
			refused(err)
			return
		}
		s, err := send.start(&campaigns.Campaign{ID: "c"})
		refused(err)
		if err == nil && (s.BatchSize < 1 || s.BatchSize > maxBatch || s.DelayMs < 100 || s.DelayMs > 60_000 || !s.Everybody && len(s.ListIDs)+len(s.SegmentIDs) == 0) {
			t.Errorf("%q is taken for %+v", body, s)
		}
	})
}

// FuzzRequests: any request to any endpoint, as the text of its target and body.
func FuzzRequests(f *testing.F) {
	w := newWorld(f, 1)
	w.haste = true
	entries := w.entries()
	none := func(string) string { return "none" }
	for i, e := range entries {
		for _, x := range examples[e.String()] {
			f.Add(uint16(i), strings.TrimPrefix(fill(x.target, none, none), "/"), []byte(fill(x.body, none, none)))
		}
	}
	c := w.newCompany("okapi", 0, 1)
	f.Fuzz(func(t *testing.T, at uint16, target string, body []byte) {
		e := entries[int(at)%len(entries)]
		if asVictim[e.String()] || len(target) > 4000 || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }) {
			return
		}
		w.t = t
		defer func() { w.t = f }()
		method := e.method
		target = "/" + target
		w.clock.Advance(time.Second)
		res := w.raw(method, target, string(body), append(c.headers(target), "Content-Type", "application/json")...)
		if fault := faultOf(method, target, true, &res); fault != "" || w.node.Err() != nil {
			t.Errorf("%s: %s %q %q: %d %.500s %v", fault, method, target, body, res.status, res.body, w.node.Err())
		}
	})
}
