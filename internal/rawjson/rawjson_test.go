package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

const sample = `{"a":1,"b":{"c":"x\"}","d":[1,{"e":2}],"n":null},"k\"ey":5e1,"ü":"ü","":{"":true},"s":"","t":"\u00e9\ud83d\ude00\n"}`

func TestScalar(t *testing.T) {
	for path, want := range map[string]string{
		"a": "1", "b|c": `x"}`, "|": "true", `k"ey`: "5e1", "ü": "ü",
		"b": "", "b|d": "", "b|n": "", "missing": "",
	} {
		got, ok := Scalar([]byte(sample), strings.Split(path, "|"))
		if ok != (want != "") || got != want {
			t.Errorf("%q: %q, %v, want %q", path, got, ok, want)
		}
	}
	if got, ok := Scalar([]byte(sample), []string{"s"}); !ok || got != "" {
		t.Errorf("an empty string: %q, %v", got, ok)
	}
	if got, ok := Scalar(nil, []string{"a"}); ok {
		t.Errorf("in nothing: %q", got)
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		path string // keys joined by |
		want string // "" for missing
	}{
		{"a", `1`},
		{"b", `{"c":"x\"}","d":[1,{"e":2}],"n":null}`},
		{"b|c", `"x\"}"`},
		{"b|d", `[1,{"e":2}]`},
		{"b|d|e", ``},
		{"b|n", `null`},
		{"b|n|x", ``},
		{"a|x", ``},
		{`k"ey`, `5e1`},
		{`k\"ey`, ``},
		{"ü", `"ü"`},
		{"", `{"":true}`},
		{"|", `true`},
		{"s", `""`},
		{"missing", ``},
	} {
		got, ok := Lookup([]byte(sample), strings.Split(c.path, "|"))
		if ok != (c.want != "") || string(got) != c.want {
			t.Errorf("%q: %s, %v", c.path, got, ok)
		}
	}
	for _, raw := range []string{"", "{}", "[]", "1", `"a"`, "null"} {
		if got, ok := Lookup([]byte(raw), []string{"a"}); ok {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

func TestEscapes(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`""`, ""},
		{`"plain ü"`, "plain ü"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00e9\u20AC"`, "Aé€"},
		{`"\ud83d\ude00!"`, "😀!"},
		{`"\ufffd"`, "\ufffd"},
	} {
		got, ok := Unquote(nil, []byte(c.raw))
		if !ok || string(got) != c.want {
			t.Errorf("Unquote(%s) = %q, %v", c.raw, got, ok)
		}
		if !Equal([]byte(c.raw), c.want) {
			t.Errorf("Equal(%s, %q) is false", c.raw, c.want)
		}
		for _, other := range []string{c.want + "x", "x" + c.want, "\xff", c.want + "\xff"} {
			if Equal([]byte(c.raw), other) {
				t.Errorf("Equal(%s, %q) is true", c.raw, other)
			}
		}
	}
	for _, raw := range []string{`"\ud800"`, `"\udc00"`, `"\ud800\u0041"`, `"\ud800\ud800"`, `"\u12"`, `"\x"`, `"`, ``, `x`, `"\"`} {
		if got, ok := Unquote(nil, []byte(raw)); ok {
			t.Errorf("Unquote(%s) = %q", raw, got)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	obj, path, number := []byte(sample), []string{"b", "c"}, []byte("-123.4567e8")
	var buf [64]byte
	if n := testing.AllocsPerRun(100, func() {
		raw, _ := Lookup(obj, path)
		Text(raw, buf[:])
		Float(number)
		Each(obj, func(key, value []byte) bool { return true })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReaders reads arbitrary bytes without a panic, and valid JSON as
// encoding/json does.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(sample), "b")
	f.Add([]byte(`[1,"a",[],{}]`), "a")
	f.Add([]byte(`{"a`), "a")
	f.Add([]byte(`{"a":"\ud800"}`), "a")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		Lookup(data, []string{key, key})
		Each(data, func(key, value []byte) bool { return true })
		EachElement(data, func(value []byte) bool { return true })
		Unquote(nil, data)
		Equal(data, key)
		Float(data)

		var compact bytes.Buffer
		if !utf8.Valid(data) || json.Compact(&compact, data) != nil {
			return
		}
		raw := compact.Bytes()
		want := decode(t, raw)
		switch want := want.(type) {
		case map[string]any:
			got := map[string]any{}
			lone := false
			if !Each(raw, func(k, v []byte) bool {
				name, ok := Unquote(nil, k)
				if !ok {
					lone = true // encoding/json puts U+FFFD there
					return true
				}
				got[string(name)] = decode(t, v)
				return true
			}) {
				t.Fatalf("Each stopped in %s", raw)
			}
			if !lone && !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v, want %v", raw, got, want)
			}
			if v, ok := Lookup(raw, []string{key}); !lone && ok != hasKey(want, key) {
				t.Fatalf("Lookup(%s, %q) = %s, %v", raw, key, v, ok)
			}
		case []any:
			var got []any
			if !EachElement(raw, func(v []byte) bool { got = append(got, decode(t, v)); return true }) {
				t.Fatalf("EachElement stopped in %s", raw)
			}
			if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v, want %v", raw, got, want)
			}
		case string:
			got, ok := Unquote(nil, raw)
			if ok && string(got) != want {
				t.Fatalf("%s: %q, want %q", raw, got, want)
			}
			if ok && !Equal(raw, want) {
				t.Fatalf("Equal(%s, %q) is false", raw, want)
			}
			if again, ok := Unquote(nil, AppendString(nil, want)); !ok || string(again) != want {
				t.Fatalf("%q came back as %q", want, again)
			}
		case json.Number:
			if KindOf(raw) != Number {
				t.Fatalf("%s is no number", raw)
			}
		}
	})
}

func hasKey(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}
