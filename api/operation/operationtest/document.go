package operationtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is the OpenAPI document of a service, with all shapes closed. It is safe
// for concurrent use.
type Document struct {
	root       map[string]any
	mu         sync.Mutex // guards the compiler and what is remembered
	compiler   *jsonschema.Compiler
	Operations []*Described
}

// Described is an operation of the document, with what became of it.
type Described struct {
	Method, Path      string
	Node              map[string]any
	Succeeded, Failed bool
	Sent              map[string]bool // fields of accepted bodies
	Surface, Needs    string
}

// Name is the method and the path.
func (o *Described) Name() string { return o.Method + " " + o.Path }

const documentURL = "muster:openapi.json"

// ReadDocument reads a document.
func ReadDocument(text []byte) (*Document, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, is := v.(map[string]any)
	if !is {
		return nil, fmt.Errorf("the document is no object")
	}
	closeShapes(root)
	d := &Document{root: root, compiler: jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(documentURL, root); err != nil {
		return nil, err
	}
	for path, item := range root["paths"].(map[string]any) {
		for method, node := range item.(map[string]any) {
			n := node.(map[string]any)
			d.Operations = append(d.Operations, &Described{
				Method: strings.ToUpper(method), Path: path, Node: n, Sent: map[string]bool{},
				Surface: n["x-surface"].(string), Needs: n["x-permission"].(string),
			})
		}
	}
	slices.SortFunc(d.Operations, func(a, b *Described) int { return strings.Compare(a.Name(), b.Name()) })
	return d, nil
}

// closeShapes refuses fields that are not described, wherever a shape lists its
// fields.
func closeShapes(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, lists := v["properties"].(map[string]any)
		_, says := v["additionalProperties"]
		if lists && !says && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for k, x := range v {
			if k != "examples" && k != "example" {
				closeShapes(x)
			}
		}
	case []any:
		for _, x := range v {
			closeShapes(x)
		}
	}
}

// Find finds the operation of a request: of several templates that fit, the one
// with the fewest parts in braces.
func (d *Document) Find(method, path string) (best *Described) {
	fewest := 0
	for _, o := range d.Operations {
		if o.Method != method {
			continue
		}
		if n, fits := fit(o.Path, path); fits && (best == nil || n < fewest) {
			best, fewest = o, n
		}
	}
	return best
}

func fit(template, path string) (braces int, fits bool) {
	t, p := strings.Split(template, "/"), strings.Split(path, "/")
	if len(t) != len(p) {
		return 0, false
	}
	for i := range t {
		switch {
		case strings.HasPrefix(t[i], "{"):
			braces++
		case t[i] != p[i]:
			return 0, false
		}
	}
	return braces, true
}

// get goes down by keys, through references.
func (d *Document) get(v any, keys ...string) (any, []string) {
	var at []string
	for _, k := range keys {
		m, _ := v.(map[string]any)
		if ref, is := m["$ref"].(string); is {
			at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			v, _ = d.get(d.root, at...)
			m, _ = v.(map[string]any)
		}
		v, at = m[k], append(at, k)
	}
	return v, at
}

// check judges a value by the shape at a place.
func (d *Document) check(at []string, value any) error {
	var pointer strings.Builder
	for _, p := range at {
		p = strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
		pointer.WriteString("/" + strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(p))
	}
	d.mu.Lock()
	s, err := d.compiler.Compile(documentURL + "#" + pointer.String())
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// CheckAnswer judges an answer.
func (d *Document) CheckAnswer(o *Described, status int, contentType string, body []byte) error {
	base := []string{"paths", o.Path, strings.ToLower(o.Method)}
	code := fmt.Sprint(status)
	r, at := d.get(o.Node, "responses", code)
	at = append(slices.Clone(base), at...)
	if r == nil {
		return fmt.Errorf("the status is not described; the body is %.300s", body)
	}
	if ref, is := r.(map[string]any)["$ref"].(string); is {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		r, _ = d.get(d.root, at...)
	}
	content, _ := r.(map[string]any)["content"].(map[string]any)
	media, _, _ := strings.Cut(contentType, ";")
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the body is not described: %.300s", body)
		}
		return nil
	}
	if _, known := content[media]; !known {
		return fmt.Errorf("the type %q is not described, but %v", media, slices.Collect(maps.Keys(content)))
	}
	if media != "application/json" {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := d.check(append(at, "content", media, "schema"), v); err != nil {
		return fmt.Errorf("the answer %.1000s does not fit: %w", body, err)
	}
	return nil
}

// CheckRequest judges a body that was accepted, and remembers its fields.
func (d *Document) CheckRequest(o *Described, media, body string) error {
	if body == "" {
		return nil
	}
	schema, at := d.get(o.Node, "requestBody", "content", media, "schema")
	if schema == nil {
		return fmt.Errorf("a body of type %q is accepted and not described", media)
	}
	if media != "application/json" {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	all, is := v.([]any)
	if !is {
		all = []any{v}
	}
	d.mu.Lock()
	for _, x := range all {
		m, _ := x.(map[string]any)
		for k := range m {
			o.Sent[k] = true
		}
	}
	d.mu.Unlock()
	if err := d.check(append([]string{"paths", o.Path, strings.ToLower(o.Method)}, at...), v); err != nil {
		return fmt.Errorf("the request %.1000s is accepted and does not fit: %w", body, err)
	}
	return nil
}

// Unsent lists the described fields of the body that no request had.
func (d *Document) Unsent(o *Described) (out []string) {
	schema, _ := d.get(o.Node, "requestBody", "content", "application/json", "schema")
	d.fields(schema, func(name string) {
		if !o.Sent[name] {
			out = append(out, name)
		}
	})
	return out
}

// fields calls fn with the names of a body's fields, in all of its forms. Of an
// array they are those of its entries.
func (d *Document) fields(schema any, fn func(string)) {
	m, _ := schema.(map[string]any)
	if m == nil {
		return
	}
	if ref, is := m["$ref"].(string); is {
		schema, _ = d.get(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		m, _ = schema.(map[string]any)
	}
	properties, _ := m["properties"].(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		fn(k)
	}
	for _, c := range append(asList(m["oneOf"]), m["items"]) {
		d.fields(c, fn)
	}
}

// CheckQuery says which parameter of a query is not described.
func (o *Described) CheckQuery(query map[string][]string) error {
	for name := range query {
		known := slices.ContainsFunc(asList(o.Node["parameters"]), func(p any) bool {
			m := p.(map[string]any)
			return m["name"] == name && m["in"] == "query"
		})
		if !known {
			return fmt.Errorf("the query's %s is not described", name)
		}
	}
	return nil
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// Succeeds reports whether an answer is a success in the form of its surface.
func Succeeds(status int, contentType string, body []byte) bool {
	if status >= 400 {
		return false
	}
	if !strings.HasPrefix(contentType, "application/json") {
		return true
	}
	var a struct {
		Status  string
		Success *bool
	}
	_ = json.Unmarshal(body, &a)
	return a.Status != "failure" && (a.Success == nil || *a.Success)
}
