package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/eventlog"
)

// Q1 and the target of the design: between a body and its encoded record no
// event costs an allocation.
func TestDecodeAllocations(t *testing.T) {
	d := newDecoder(Limits{}.withDefaults())
	spaced := bytes.ReplaceAll(benchBody(100), []byte(`":`), []byte(`": `))
	escaped := bytes.ReplaceAll(benchBody(100), []byte("Maria"), []byte(`Mar\u00eda \n`))
	imported := bytes.Replace(benchBody(100), []byte(`{"events"`), []byte(`{"file":"`+strings.Repeat("0", 64)+`","first_row":0,"events"`), 1)
	imported = bytes.ReplaceAll(imported, []byte(`{"event_type"`), []byte(`{"timestamp":"2024-05-31T12:30:00Z","event_type"`))
	for name, tt := range map[string]struct {
		body []byte
		kind eventlog.Kind
	}{
		"compact": {benchBody(100), eventlog.KindEvents}, "spaced": {spaced, eventlog.KindEvents},
		"escaped": {escaped, eventlog.KindEvents}, "import": {imported, eventlog.KindImport},
	} {
		n := testing.AllocsPerRun(50, func() {
			if err := d.batch(tt.body, tt.kind, testNow.UnixMilli()); err != nil {
				t.Fatal(err.text)
			}
			if d.events != 100 {
				t.Fatal(d.events, string(d.texts))
			}
			d.Finish(&eventlog.Envelope{})
		})
		if n > 0 {
			t.Errorf("%s: %v allocations for 100 events", name, n)
		}
	}
	one := []byte(`{"event_type": "a", "user": {"email": "x@y.z"}, "properties": {"value": 1, "s": "\u00e9"}}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := d.single(one, testNow.UnixMilli()); err != nil || d.events != 1 {
			t.Fatal(err)
		}
		d.Finish(&eventlog.Envelope{})
	}); n > 0 {
		t.Errorf("single: %v allocations", n)
	}
}

func TestImportRows(t *testing.T) {
	t.Parallel()
	d, err := NewDecoder(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct{ row, refusal string }{
		{`{"event_type":"a","user":{"phone":"1"},"timestamp":1}`, ""},
		{` {"event_type":"b","user":{"phone":"1"},"timestamp":"2024-06-01T12:00:00Z"} ` + "\r", ""},
		{`{"event_type":"a","user":{"phone":"1"},"timestamp":1} {}`, "byte 54: unexpected text behind the value"},
		{`{"event_type":"a","user":{"phone":"1"},"timestamp":1`, "byte 52: the text ends too early"},
		{`{"event_type":"a","user":{"phone":"1"},"timestamp":1,"x":"` + "\xff" + `"}`, "byte 58: a string must be valid UTF-8"},
		{``, "byte 0: the text ends too early"},
		{`{"event_type":"a","timestamp":1}`, "user is missing"},
		{`{"event_type":"a","user":{"phone":"1"},"timestamp":1717243200001}`, "timestamp is in the future"},
		{`{"event_type":"c","user":{"phone":"1"},"timestamp":2}`, ""},
	}
	for round := range 2 { // the second uses the memory of the first again
		file := [32]byte{1, byte(round)}
		d.StartImport(file, 40, true)
		for i, tt := range rows {
			err := d.AppendImportRow([]byte(tt.row), testNow.UnixMilli())
			var refused *RowError
			if tt.refusal == "" && err != nil || tt.refusal != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Message, tt.refusal)) {
				t.Errorf("row %d: %v; want %q", i, err, tt.refusal)
			}
		}
		if d.Rows() != len(rows) || d.Events() != 3 {
			t.Fatalf("%d rows, %d events", d.Rows(), d.Events())
		}
		size := d.Size()
		rec := d.Finish(&eventlog.Envelope{Account: 7, StampMs: 9})
		if len(rec) != size+6 { // the refused rows, a byte each
			t.Errorf("size %d, record of %d bytes", size, len(rec))
		}
		env, body, err := eventlog.DecodeEnvelope(rec)
		if err != nil || env.Kind != eventlog.KindImport || env.Account != 7 || env.StampMs != 9 {
			t.Fatal(env, err)
		}
		head, body, err := eventlog.DecodeImportHead(body)
		if err != nil || !reflect.DeepEqual(head, eventlog.ImportHead{File: file, FirstRow: 40, Rows: 9, TriggerFlows: true, ListsRefused: true, Refused: head.Refused}) || len(head.Refused) != 6 {
			t.Fatal(head, err)
		}
		if got := eventsOf(t, body); got != "a phone=\"1\" time=1970-01-01T00:00:00.001Z\nb phone=\"1\" time=2024-06-01T12:00:00.000Z\nc phone=\"1\" time=1970-01-01T00:00:00.002Z\n" {
			t.Error(got)
		}
	}
}

func eventsOf(t *testing.T, body []byte) string {
	r, err := eventlog.NewEventsReader(body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var e eventlog.Event
	for r.Next(&e) {
		dumpEvent(&b, &e)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return b.String()
}

func TestTimestampAgreesWithTime(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ms := rng.Int64N(253402300799999+62135596800000) - 62135596800000
		at := time.UnixMilli(ms).In(time.FixedZone("", 60*(rng.IntN(2*14*60)-14*60)))
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		layout := []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00", "2006-01-02t15:04:05.000000z07:00", "2006-01-02 15:04:05.000-07:00"}[rng.IntN(4)]
		text := at.Format(layout)
		text = strings.ReplaceAll(text, "z0", "+0") // no layout has a small z
		if strings.Contains(layout, "z07") {
			text = at.UTC().Format("2006-01-02t15:04:05.000000z")
		}
		if got, ok := parseRFC3339([]byte(text)); !ok || got != ms {
			t.Fatalf("%s: %d, %v; want %d", text, got, ok, ms)
		}
	}
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z": 0, "2000-02-29T00:00:00Z": 951782400000, "2016-12-31T23:59:60Z": 1483228800000,
		"2024-05-31T12:30:00.1239999Z": 1717158600123, "1969-12-31T23:59:59.999Z": -1, "0000-01-01T00:00:00Z": -62167219200000,
	} {
		if got, ok := parseRFC3339([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "2024-05-31", "2024-05-31T12:30:00", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		"2024-04-31T00:00:00Z", "2024-05-00T00:00:00Z", "2024-05-31T24:00:00Z", "2024-05-31T12:60:00Z", "2024-05-31T12:30:61Z", "2024-05-31T12:30:00.Z",
		"2024-05-31T12:30:00+0200", "2024-05-31T12:30:00+24:00", "2024-05-31T12:30:00+02:60", "2024-05-31T12:30:00ZZ", "2024-05-31T12:30:00,5Z",
		"2024/05/31T12:30:00Z", "24-05-31T12:30:00Z    ", "2024-05-31T1a:30:00Z", "2024-05-31T12:30:00.123", "+2024-05-31T12:30:00Z",
	} {
		if ms, ok := parseRFC3339([]byte(text)); ok {
			t.Errorf("%q is %d", text, ms)
		}
	}
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "a_b": true, "0": true, "a1_2b_c3": true, "": false, "_": false, "a_": false, "_a": false, "a__b": false, "A": false, "a-b": false, "a b": false, "ä": false, "a\n": false,
	} {
		if isSnakeCase([]byte(name)) != want {
			t.Errorf("%q", name)
		}
	}
}

// Unknown fields are held in memory for the search for duplicates; their number
// is bounded (Q1).
func TestUnknownFieldsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDecoder(Limits{}.withDefaults())
	d.IgnoreUnknown(true)
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"x%d":%d,`, i, i)
		}
		return b.String()
	}
	for n, want := range map[int]string{maxUnknown: "", maxUnknown + 1: "more than 256 unknown fields", 100_000: "more than 256 unknown fields"} {
		for _, body := range []string{
			`{` + fields(n) + `"event_type":"a","user":{"phone":"1"}}`,
			`{"event_type":"a","user":{` + fields(n) + `"phone":"1"}}`,
		} {
			if err := d.single([]byte(body), testNow.UnixMilli()); err != nil || !strings.Contains(string(d.errorText(0)), want) || want == "" && d.events != 1 {
				t.Errorf("%d: %v, %s", n, err, d.texts)
			}
		}
		err := d.batch([]byte(`{`+fields(n)+`"events":[]}`), eventlog.KindEvents, 0)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.text, want)) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if d.eventNames.Len() > maxUnknown || d.userNames.Len() > maxUnknown {
		t.Error(d.eventNames.Len(), d.userNames.Len())
	}
}

// No record is longer than its body and a head: that is what RecordBytes and the
// budget are reckoned with.
func TestRecordIsShorterThanBody(t *testing.T) {
	t.Parallel()
	d := newDecoder(Limits{}.withDefaults())
	for _, event := range []string{
		`{"event_type":"a","user":{"phone":"1"}}`,
		`{"event_type":"a","user":{"phone":"1","geo":{},"attributes":{},"email":"1","external_id":"2","first_name":"3","last_name":"4"},"properties":{},"idempotency_key":"5","timestamp":0}`,
		`{"event_type":"a","user":{"phone":"` + strings.Repeat(`\u001f`, 100) + `"},"properties":{"a":"` + strings.Repeat(`\u001F`, 1000) + `"}}`,
	} {
		body := []byte(`{"events":[` + strings.Repeat(event+",", 5000) + event + `]}`)
		for _, kind := range []eventlog.Kind{eventlog.KindEvents, eventlog.KindImport} {
			d.batch(body, kind, testNow.UnixMilli())
			if len(d.rec) > len(body)+recordHead {
				t.Errorf("%s: a record of %d bytes for a body of %d", event[:30], len(d.rec), len(body))
			}
		}
	}
}

// checkEvent compares what the decoder made of one event with encoding/json.
func checkEvent(t *testing.T, e *eventlog.Event, src map[string]any) {
	t.Helper()
	user := src["user"].(map[string]any)
	for _, f := range []struct {
		got  []byte
		want any
	}{
		{e.Type, src["event_type"]}, {e.IdempotencyKey, src["idempotency_key"]}, {e.Email, user["email"]}, {e.ExternalID, user["external_id"]},
		{e.Phone, user["phone"]}, {e.FirstName, user["first_name"]}, {e.LastName, user["last_name"]},
	} {
		want, _ := f.want.(string)
		if string(f.got) != want || !utf8.Valid(f.got) || bytes.IndexByte(f.got, 0) >= 0 {
			t.Fatalf("%q, want %q", f.got, want)
		}
	}
	for _, f := range []struct {
		got  []byte
		want any
	}{{e.Properties, src["properties"]}, {e.Geo, user["geo"]}, {e.Attributes, user["attributes"]}} {
		if f.got == nil {
			if f.want != nil {
				t.Fatalf("absent, want %v", f.want)
			}
			continue
		}
		var got any
		if err := json.Unmarshal(f.got, &got); err != nil {
			t.Fatalf("%q: %v", f.got, err)
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", f.want) {
			t.Fatalf("%#v, want %#v", got, f.want)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, seed := range stories(f, "testdata/event.txt") {
		f.Add([]byte(seed))
	}
	d := newDecoder(Limits{Depth: 8, ObjectBytes: 200}.withDefaults())
	f.Fuzz(func(t *testing.T, body []byte) {
		err := d.single(body, testNow.UnixMilli())
		valid := json.Valid(body) && utf8.Valid(body)
		if deep(body) || len(bytes.TrimSpace(body)) == 0 {
			return
		}
		if err != nil {
			if err.status != 400 || valid == strings.Contains(err.text, "not valid JSON") {
				t.Fatalf("%q: %d %s", body, err.status, err.text)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is not JSON", body)
		}
		checkResults(t, d, 1)
		_, events, _ := eventlog.DecodeEnvelope(d.Finish(&eventlog.Envelope{}))
		var src map[string]any
		if err := json.Unmarshal(body, &src); err != nil {
			// Numbers that are ignored may be beyond float64.
			return
		}
		r, errEvents := eventlog.NewEventsReader(events)
		var e eventlog.Event
		for r.Next(&e) {
			checkEvent(t, &e, src)
		}
		if errEvents != nil || r.Err() != nil {
			t.Fatal(errEvents, r.Err())
		}
	})
}

func FuzzDecodeBatch(f *testing.F) {
	for _, file := range []string{"testdata/batch.txt", "testdata/import.txt"} {
		for _, seed := range stories(f, file) {
			f.Add([]byte(seed), strings.Contains(file, "import"))
		}
	}
	d := newDecoder(Limits{Events: 50, Depth: 8, ObjectBytes: 200}.withDefaults())
	f.Fuzz(func(t *testing.T, body []byte, imported bool) {
		kind := eventlog.KindEvents
		if imported {
			kind = eventlog.KindImport
		}
		err := d.batch(body, kind, testNow.UnixMilli())
		valid := json.Valid(body) && utf8.Valid(body)
		if deep(body) || len(bytes.TrimSpace(body)) == 0 {
			return
		}
		if err != nil {
			if err.status == 400 && valid == strings.Contains(err.text, "not valid JSON") && !strings.Contains(err.text, "unknown fields") {
				t.Fatalf("%q: %d %s", body, err.status, err.text)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is not JSON", body)
		}
		checkResults(t, d, -1)
		_, rest, _ := eventlog.DecodeEnvelope(d.Finish(&eventlog.Envelope{}))
		if imported {
			var head eventlog.ImportHead
			var err error
			if head, rest, err = eventlog.DecodeImportHead(rest); err != nil || int(head.Rows) != len(d.results) {
				t.Fatal(head, err)
			}
		}
		r, errEvents := eventlog.NewEventsReader(rest)
		if errEvents != nil || r.Len() != d.events {
			t.Fatal(errEvents, r.Len())
		}
		var src struct {
			Events []json.RawMessage `json:"events"`
		}
		_ = json.Unmarshal(body, &src)
		var e eventlog.Event
		for i := range d.results {
			if len(d.errorText(i)) > 0 {
				continue
			}
			if !r.Next(&e) {
				t.Fatal("fewer events than results", r.Err())
			}
			var one map[string]any
			if i < len(src.Events) && json.Unmarshal(src.Events[i], &one) == nil {
				checkEvent(t, &e, one)
			}
		}
		if r.Next(&e) || r.Err() != nil {
			t.Fatal("more events than results", r.Err())
		}
	})
}

// deep reports whether encoding/json would refuse the nesting.
func deep(body []byte) bool {
	return bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) > 5000
}

// checkResults checks what holds for every result.
func checkResults(t *testing.T, d *Decoder, want int) {
	if want >= 0 && len(d.results) != want {
		t.Fatalf("%d results", len(d.results))
	}
	good := 0
	for i := range d.results {
		text := d.errorText(i)
		if len(text) == 0 {
			good++
		}
		if len(text) > 600 || !utf8.Valid(text) {
			t.Fatalf("error text %q", text)
		}
	}
	if good != d.events {
		t.Fatalf("%d good results, %d events", good, d.events)
	}
}

// stories returns the bodies of the requests in a file.
func stories(t testing.TB, file string) []string {
	var bodies []string
	for _, step := range readStories(t, file) {
		request, _, _ := strings.Cut(step, "\n----\n")
		_, body, _ := strings.Cut(request, "\n")
		for strings.HasPrefix(body, "> ") {
			_, body, _ = strings.Cut(body, "\n")
		}
		bodies = append(bodies, expand(t, body))
	}
	return bodies
}
