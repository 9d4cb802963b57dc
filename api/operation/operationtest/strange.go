// Package operationtest makes requests that operations must refuse.
package operationtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/operation"
)

// Strange is a request with something that its operation does not take.
type Strange struct {
	// Path has values in the place of its parts in braces.
	Method, Path, Body string
	// Names is what the refusal must say.
	Names string
}

// Refused are requests of an operation, each with a field or a parameter too many: a
// name like no other, and each known field of the body with a letter too many.
func Refused(t *testing.T, prefix string, op *operation.Operation) (out []Strange) {
	t.Helper()
	parts := strings.Split(op.Path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "none"
		}
	}
	path := prefix + strings.Join(parts, "/")
	sample := map[string]any{}
	if op.Body != nil {
		b, err := json.Marshal(op.Body.Sample())
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&sample); err != nil {
			t.Fatalf("%s %s: the example %s: %v", op.Method, op.Path, b, err)
		}
	}
	with := func(name string, value any) string {
		body := maps.Clone(sample)
		body[name] = value
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	good := ""
	if op.Body != nil {
		b, err := json.Marshal(sample)
		if err != nil {
			t.Fatal(err)
		}
		good = string(b)
	}
	out = append(out, Strange{op.Method, path + "?no_such_parameter=1", good, "no_such_parameter is not a parameter of this call"})
	for _, p := range op.Query {
		out = append(out, Strange{op.Method, path + "?" + p.Name + "zz=1", good, p.Name + "zz is not a parameter of this call"})
	}
	if op.Method == "GET" {
		return out
	}
	out = append(out, Strange{op.Method, path, with("no_such_field", 1), "no_such_field"})
	for _, name := range slices.Sorted(maps.Keys(sample)) {
		out = append(out, Strange{op.Method, path, with(name+"z", sample[name]), name + "z"})
	}
	return out
}
