package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answer is an answer over HTTP. A path into its JSON has dots, numbers count
// elements: "data.0._id".
type answer struct {
	t      *testing.T
	what   string // the request
	status int
	header http.Header
	raw    []byte
	body   any // numbers are json.Number
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (a *answer) fault(format string, args ...any) {
	a.t.Helper()
	a.t.Errorf("%s\n\tanswered %d %s\n\t%s", a.what, a.status, a.raw, fmt.Sprintf(format, args...))
}

// http expects a status.
func (a *answer) http(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.fault("expected HTTP %d", status)
	}
	return a
}

// at is what stands at a path.
func (a *answer) at(path string) (v any, found bool) {
	v = a.body
	if path == "" {
		return v, v != nil
	}
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			if v, found = x[part]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// eq expects a value, compared as JSON; nil is null.
func (a *answer) eq(path string, want any) *answer {
	a.t.Helper()
	b, err := json.Marshal(want)
	ok(a.t, err)
	var x any
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	ok(a.t, dec.Decode(&x))
	if got, found := a.at(path); !found || !reflect.DeepEqual(got, x) {
		a.fault("expected %s to be %s", path, b)
	}
	return a
}

// kinds expects types: string, integer, number, boolean, array, object, time.
func (a *answer) kinds(path string, want map[string]string) *answer {
	a.t.Helper()
	for name, kind := range want {
		v, found := a.at(strings.TrimPrefix(path+"."+name, "."))
		if have := kindOf(v); !found || have != kind && !(kind == "number" && have == "integer") && !(kind == "string" && have == "time") {
			a.fault("expected %s.%s to be of type %s", path, name, kind)
		}
	}
	return a
}

// instant is a time in ISO 8601, in UTC.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$`)

func kindOf(v any) string {
	switch x := v.(type) {
	case string:
		if instant.MatchString(x) {
			return "time"
		}
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if _, err := x.Int64(); err == nil {
			return "integer"
		}
		return "number"
	}
	return "null"
}

// only expects an object to have these fields and no others.
func (a *answer) only(path string, names ...string) *answer {
	a.t.Helper()
	v, _ := a.at(path)
	x, _ := v.(map[string]any)
	slices.Sort(names)
	if have := slices.Sorted(maps.Keys(x)); !slices.Equal(have, names) {
		a.fault("expected %q to have the fields %v, and no others", path, names)
	}
	return a
}

// holds expects an array to contain a text, or, with is false, not to.
func (a *answer) holds(path, text string, is bool) *answer {
	a.t.Helper()
	if slices.Contains(a.array(path), any(text)) != is {
		a.fault("%s holding %q: expected %v", path, text, is)
	}
	return a
}

// length expects how many elements an array has.
func (a *answer) length(path string, n int) *answer {
	a.t.Helper()
	if have := len(a.array(path)); have != n {
		a.fault("expected %s to have %d elements", path, n)
	}
	return a
}

func (a *answer) array(path string) []any {
	a.t.Helper()
	v, _ := a.at(path)
	x, is := v.([]any)
	if !is {
		a.t.Fatalf("%s answered %d %s: %s is no array", a.what, a.status, a.raw, path)
	}
	return x
}

func (a *answer) str(path string) string {
	a.t.Helper()
	v, _ := a.at(path)
	x, is := v.(string)
	if !is || x == "" {
		a.t.Fatalf("%s answered %d %s: %s is no text", a.what, a.status, a.raw, path)
	}
	return x
}

func (a *answer) num(path string) float64 {
	a.t.Helper()
	v, _ := a.at(path)
	x, is := v.(json.Number)
	if !is {
		a.t.Fatalf("%s answered %d %s: %s is no number", a.what, a.status, a.raw, path)
	}
	f, err := x.Float64()
	ok(a.t, err)
	return f
}

// recent expects a time of the last minutes.
func (a *answer) recent(path string) time.Time {
	a.t.Helper()
	at, err := time.Parse(time.RFC3339, a.str(path))
	if err != nil || kindOf(a.str(path)) != "time" || time.Since(at) > 5*time.Minute || time.Until(at) > time.Minute {
		a.fault("expected %s to be a time of now in UTC: %v", path, err)
	}
	return at
}

// success expects the envelope of Surface A with nothing to say.
func (a *answer) success() *answer {
	a.t.Helper()
	return a.says("success", "")
}

// says expects the envelope with a status and a message.
func (a *answer) says(status, message string) *answer {
	a.t.Helper()
	return a.http(200).eq("status", status).eq("message", message)
}

// failure expects an HTTP 200 that says what failed.
func (a *answer) failure(message string) *answer {
	a.t.Helper()
	return a.says("failure", message)
}

// fails expects a failure whose message begins with a field's name, or has a word
// in it.
func (a *answer) fails(word string) *answer {
	a.t.Helper()
	a.http(200).eq("status", "failure")
	if v, _ := a.at("message"); !strings.Contains(fmt.Sprint(v), word) || v == "" {
		a.fault("expected a message with %q", word)
	}
	return a
}

// names expects a failure whose message begins with the field at fault.
func (a *answer) names(field string) *answer {
	a.t.Helper()
	a.http(200).eq("status", "failure")
	if v, _ := a.at("message"); !strings.HasPrefix(fmt.Sprint(v), field) {
		a.fault("expected a message that begins with %q", field)
	}
	return a
}
