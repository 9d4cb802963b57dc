package trackingapi

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
)

// FuzzCalls: whatever a body says, no call makes the service fail, and what becomes an event
// is text and JSON that the log may hold.
func FuzzCalls(f *testing.F) {
	for _, body := range []string{
		track, `{"batch":[` + track + `,{}],"context":{"ip":"1"},"sentAt":"2025-01-01T00:00:00Z"}`,
		`{"type":"identify","userId":4.2e3,"traits":{"email":"a@x.io","address":{"city":"B","street":"\u00e9"}},"context":{"traits":{"a":1}}}`,
		`{"type":"page","anonymousId":"a","name":"N","context":{"page":{"url":"u"},"campaign":{"name":"c"}}}`,
		`{"type":"group","userId":"u","groupId":7,"traits":{"x":[{"y":"}"}]}}`,
		`{"type":"merge","mergeProperties":[{"type":"email","value":"a"},{"type":"user_id","value":1}]}`,
		`{"type":"alias","userId":"u","previousId":"p"}`,
		`{"api_key":"k","event":"$pageview","distinct_id":"d","properties":{"$current_url":"u","$set":{"plan":"x"},"a":"\"\\"},"uuid":"1"}`,
		`[{"event":"$identify","properties":{"distinct_id":"d","$anon_distinct_id":"a","token":"t"}}]`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, posthog bool) {
		s := jsonscan.New(31, 64<<10)
		w := &work{scan: s}
		bad, reason := readEnvelope(s, body, &w.around)
		if reason != "" {
			if json.Valid(body) && len(bytes.TrimSpace(body)) > 0 && (bytes.TrimSpace(body)[0] == '{' || bytes.TrimSpace(body)[0] == '[') {
				t.Fatalf("%q is JSON, and refused: %s", body, reason)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON, and taken", body)
		}
		w.keepAround()
		keyIn(s, &w.around)
		w.mapper = mapper{request: contextSource, source: contextSource, receivedMs: received, names: new(typeNames), around: &w.around, limits: limits{512, 512, 64 << 10}}
		i, more := s.Space(0), true
		if w.around.events >= 0 {
			i = s.Space(w.around.events + 1)
			more = s.Byte(i) != ']'
		} else {
			w.around.message = message{}
		}
		for more && bad == nil {
			var m message
			var ev eventlog.Event
			next, bad := readMessage(s, i, &m)
			if next < 0 {
				t.Fatalf("%q was JSON at first: %v", body, s.Err())
			}
			switch {
			case bad != nil:
			case posthog:
				bad = w.mapper.posthog(&m, &ev)
			default:
				bad = w.mapper.segment(&m, callOfBody, &ev)
			}
			if bad == nil {
				checkEvent(t, &ev)
			}
			if w.around.events < 0 {
				return
			}
			if i, more = s.More(next, ']'); i < 0 {
				t.Fatalf("%q was JSON at first: %v", body, s.Err())
			}
		}
	})
}

func checkEvent(t *testing.T, ev *eventlog.Event) {
	t.Helper()
	s := jsonscan.New(40, 256<<10)
	for _, object := range [][]byte{ev.Geo, ev.Attributes, ev.Properties} {
		if len(object) == 0 {
			continue
		}
		s.Reset(object)
		text, next := s.Value(0, 0)
		if next != len(object) || s.HasFault() || !bytes.Equal(text, object) || object[0] != '{' || len(object) > 64<<10 {
			t.Fatalf("%q is no object in canonical text", object)
		}
	}
	for _, text := range [][]byte{ev.Email, ev.ExternalID, ev.Phone, ev.AnonymousID, ev.PreviousID, ev.FirstName, ev.LastName} {
		if len(text) > 512 || bytes.IndexByte(text, 0) >= 0 {
			t.Fatalf("%q is no identifier", text)
		}
	}
	if len(ev.Type) == 0 || len(ev.Type) > 128 || len(ev.IdempotencyKey) > maxMessageIDBytes || ev.TimeMs < 0 || ev.TimeMs > received {
		t.Fatalf("%q at %d, key %q", ev.Type, ev.TimeMs, ev.IdempotencyKey)
	}
}
