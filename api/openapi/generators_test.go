package openapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/operation"
)

// TestKeysAreUnique: no object has a key twice. Parsers of YAML, which most
// generators read JSON with, refuse that.
func TestKeysAreUnique(t *testing.T) {
	b, err := operation.Document(groups())
	ok(t, err)
	d := json.NewDecoder(bytes.NewReader(b))
	var value func(path string)
	value = func(path string) {
		token, err := d.Token()
		ok(t, err)
		switch token {
		case json.Delim('{'):
			seen := map[string]bool{}
			for d.More() {
				key, err := d.Token()
				ok(t, err)
				k := key.(string)
				if seen[k] {
					t.Errorf("%s has %q twice", path, k)
				}
				seen[k] = true
				value(path + "/" + k)
			}
		case json.Delim('['):
			for d.More() {
				value(path + "/-")
			}
		default:
			return
		}
		_, err = d.Token() // the closing bracket
		ok(t, err)
	}
	value("")
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("something follows the document: %v", err)
	}
}

// TestGeneratorsTakeTheSchemas: constructs of JSON Schema that generators of
// clients do not read, or read wrongly, do not occur. Package generators runs the
// generators themselves; this names the place of the fault, and needs nothing.
func TestGeneratorsTakeTheSchemas(t *testing.T) {
	doc := read(t)
	components := asMap(at(doc, "components", "schemas"))
	for name := range components {
		// Types of the clients' own code.
		for _, taken := range []string{"APIKey", "BasicAuth", "APIClient", "Configuration", "APIResponse", "Client"} {
			if strings.EqualFold(name, taken) {
				t.Errorf("the schema %s has the name of a type that generators add", name)
			}
		}
	}
	schemas := 0
	var walk func(path string, v any)
	schema := func(path string, m map[string]any) {
		schemas++
		if kinds, is := m["type"].([]any); is && (len(kinds) != 2 || kinds[1] != "null") {
			t.Errorf("%s: type %v; use oneOf", path, kinds)
		}
		if _, is := m["const"]; is {
			t.Errorf("%s: const; use an enumeration of one value", path)
		}
		if _, is := m["default"]; is && !strings.Contains(path, "/parameters/") {
			t.Errorf("%s: default; generators make the field required by it", path)
		}
		if _, is := m["anyOf"]; is {
			t.Errorf("%s: anyOf; use oneOf", path)
		}
		for _, v := range asList(m["enum"]) {
			if v == nil {
				t.Errorf("%s: null in an enumeration; use oneOf of the enumeration and null", path)
			}
		}
		properties := asMap(m["properties"])
		for name := range properties {
			if properties[name+"_ok"] != nil {
				t.Errorf("%s: %s beside %s_ok; generated Go has a method for each, of the same name", path, name, name)
			}
		}
		if format := m["format"]; m["type"] == "integer" && format != "int64" || m["type"] == "number" && format != "double" {
			t.Errorf("%s: a number of format %v; generated Go would keep it in 32 bits", path, format)
		}
		if d := m["discriminator"]; d != nil {
			if mapping := asMap(at(d, "mapping")); len(mapping) != len(asList(m["oneOf"])) {
				t.Errorf("%s: the discriminator has %d values for %d schemas", path, len(mapping), len(asList(m["oneOf"])))
			}
		}
	}
	walk = func(path string, v any) {
		for i, x := range asList(v) {
			if name, is := at(x, "name").(string); is {
				walk(path+"/"+name, x)
			} else {
				walk(path+"/"+strconv.Itoa(i), x)
			}
		}
		m := asMap(v)
		if m["type"] != nil || m["oneOf"] != nil || m["properties"] != nil {
			schema(path, m)
		}
		for k, x := range m {
			if k == "properties" {
				for name, p := range asMap(x) {
					walk(path+"/properties/"+name, p)
				}
			} else if k != "examples" && k != "example" && k != "enum" && k != "default" && k != "securitySchemes" {
				walk(path+"/"+k, x)
			}
		}
	}
	walk("", doc)
	b, err := json.Marshal(doc)
	ok(t, err)
	for name := range components {
		if !bytes.Contains(b, []byte(`"#/components/schemas/`+name+`"`)) {
			t.Errorf("the schema %s is never used", name)
		}
	}
	if schemas < 1000 {
		t.Errorf("only %d schemas were looked at", schemas)
	}
}
