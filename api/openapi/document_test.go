package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/api/openapi"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/ingest/trackingapi"
)

// The schema of OpenAPI 3.1 as the OpenAPI Initiative publishes it (Apache 2.0).
//
//go:embed testdata/openapi-3.1.schema.json
var metaSchema []byte

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// groups are all nouns of the service.
func groups() []operation.Group {
	return append(slices.Concat(new(keyapi.API).Operations(), new(ingest.Handler).Operations(), new(api.API).Operations(), new(keyapi.API).SessionOperations(), trackingapi.Operations()), openapi.Operations())
}

func read(t *testing.T) (doc map[string]any) {
	t.Helper()
	b, err := operation.Document(groups())
	ok(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	ok(t, err)
	return v.(map[string]any)
}

// at goes down an object by its keys.
func at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func compiler(t *testing.T, doc any) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "media-range", Validate: func(any) error { return nil }})
	ok(t, c.AddResource("muster:openapi.json", doc))
	return c
}

// operations calls fn for every operation.
func operations(doc map[string]any, fn func(method, path string, op map[string]any)) {
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			fn(method, path, op.(map[string]any))
		}
	}
}

func TestDocumentIsOpenAPI(t *testing.T) {
	doc := read(t)
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(metaSchema))
	ok(t, err)
	c := compiler(t, doc)
	ok(t, c.AddResource("https://spec.openapis.org/oas/3.1/schema", meta))
	s, err := c.Compile("https://spec.openapis.org/oas/3.1/schema")
	ok(t, err)
	ok(t, s.Validate(doc))
}

// escaped is a path as a JSON pointer has it, in a URL.
func escaped(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		p = strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
		b.WriteString("/" + strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", " ", "%20").Replace(p))
	}
	return b.String()
}

// TestExamples: all schemas are valid JSON Schema, and all examples fit theirs:
// those of bodies and answers, and those of each shape.
func TestExamples(t *testing.T) {
	doc := read(t)
	c := compiler(t, doc)
	checked := 0
	check := func(pointer string, examples ...any) {
		t.Helper()
		s, err := c.Compile("muster:openapi.json#" + pointer)
		if err != nil {
			t.Errorf("%s: %v", pointer, err)
			return
		}
		for _, x := range examples {
			checked++
			if err := s.Validate(x); err != nil {
				t.Errorf("%s: the example does not fit: %v", pointer, err)
			}
		}
	}
	// Every schema, wherever it stands.
	var walk func(pointer string, v any)
	walk = func(pointer string, v any) {
		m, is := v.(map[string]any)
		if !is {
			if list, is := v.([]any); is {
				for i, x := range list {
					walk(pointer+escaped(strconv.Itoa(i)), x)
				}
			}
			return
		}
		if list, is := m["examples"].([]any); is {
			check(pointer, list...)
		}
		for k, x := range m {
			if k != "examples" && k != "example" && k != "enum" && k != "default" && k != "const" {
				walk(pointer+escaped(k), x)
			}
		}
	}
	walk("", doc)
	operations(doc, func(method, path string, op map[string]any) {
		base := escaped("paths", path, method)
		content := func(pointer string, v any) {
			media, _ := v.(map[string]any)
			for name, m := range media {
				m := m.(map[string]any)
				p := pointer + escaped(name)
				if m["schema"] == nil {
					continue
				}
				check(p + "/schema")
				if x, is := m["example"]; is {
					check(p+"/schema", x)
				}
				for _, x := range asMap(m["examples"]) {
					check(p+"/schema", at(x, "value"))
				}
			}
		}
		content(base+"/requestBody/content", at(op, "requestBody", "content"))
		for status, r := range op["responses"].(map[string]any) {
			content(base+escaped("responses", status, "content"), at(r, "content"))
		}
	})
	if checked < 500 {
		t.Errorf("only %d examples were checked", checked)
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// TestOperations: what no schema demands of operations.
func TestOperations(t *testing.T) {
	doc := read(t)
	ids := map[string]string{}
	permission := regexp.MustCompile(`^([a-z_]+:(read|write)|none|signed-in|system-admin|app-secret|write-key|any-key)$`)
	var tags []string
	for _, x := range doc["tags"].([]any) {
		tags = append(tags, at(x, "name").(string))
	}
	used := map[string]bool{}
	operations(doc, func(method, path string, op map[string]any) {
		name := method + " " + path
		id, _ := op["operationId"].(string)
		if other, taken := ids[id]; id == "" || taken {
			t.Errorf("%s: operationId %q is empty, or that of %s", name, id, other)
		}
		ids[id] = name
		if p, _ := op["x-permission"].(string); !permission.MatchString(p) {
			t.Errorf("%s: x-permission %q", name, p)
		}
		if s, _ := op["summary"].(string); s == "" {
			t.Errorf("%s has no summary", name)
		}
		tag := op["tags"].([]any)[0].(string)
		if used[tag] = true; !slices.Contains(tags, tag) {
			t.Errorf("%s: the tag %q is not listed", name, tag)
		}
		in := map[string]bool{}
		for _, p := range asList(op["parameters"]) {
			if at(p, "in") == "path" {
				in[at(p, "name").(string)] = true
			}
		}
		for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
			if !in[m[1]] {
				t.Errorf("%s: {%s} is no parameter", name, m[1])
			}
		}
	})
	for _, tag := range tags {
		if !used[tag] {
			t.Errorf("the tag %q has no operation", tag)
		}
	}
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// TestComponentsAreOneThing: a name stands for one shape only.
func TestComponentsAreOneThing(t *testing.T) {
	bodies := map[string]string{}
	for _, g := range groups() {
		for _, op := range g.Operations {
			for _, s := range []*shape.Schema{op.Body, op.Data} {
				// A fresh memory each time, or the second of a name would not be seen.
				s.Walk(map[string]bool{}, func(s *shape.Schema) {
					if s.Component() == "" {
						return
					}
					b, err := json.Marshal(s.Body())
					ok(t, err)
					if old, known := bodies[s.Component()]; known && old != string(b) {
						t.Errorf("%s has two shapes:\n%s\n%s", s.Component(), old, b)
					}
					bodies[s.Component()] = string(b)
				})
			}
		}
	}
}
