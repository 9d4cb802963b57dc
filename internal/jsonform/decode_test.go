package jsonform

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/jsonscan"
)

type embedded struct {
	Deep *string `json:"deep"`
}

type sample struct {
	embedded
	DryRun bool                       `json:"dryRun"`
	ListID []string                   `json:"list_id"`
	Raw    json.RawMessage            `json:"raw"`
	Inner  *sample                    `json:"inner"`
	List   []sample                   `json:"list"`
	By     map[string]sample          `json:"by"`
	Free   map[string]any             `json:"free"`
	N      float64                    `json:"n"`
	Named  string                     // by its Go name
	Hidden string                     `json:"-"`
	Any    any                        `json:"any"`
	Array  [2]int                     `json:"array"`
	Raws   map[string]json.RawMessage `json:"raws"`
}

// TestDecodeNames: only the very name of a field is that field, at any depth; others
// are passed over or refused.
func TestDecodeNames(t *testing.T) {
	for _, text := range []string{
		`{"dryRun":true,"DryRun":false}`, `{"DRYRUN":false,"dryRun":true}`, "{\"dryRun\":true,\"li\u017ft_id\":[\"x\"]}", `{"dryRun":true,"hidden":"x","Hidden":"x","-":"x","named":"x"}`,
		`{"dryRun":true,"inner":{"dryrun":true},"list":[{"N":5}],"by":{"DryRun":{"Deep":"x"}}}`,
	} {
		var v sample
		if err := Decode([]byte(text), &v, Ignore); err != nil || !v.DryRun || v.ListID != nil || v.Hidden != "" || v.Named != "" {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
		if v.Inner != nil && (v.Inner.DryRun || v.List[0].N != 0 || v.By["DryRun"].Deep != nil) {
			t.Errorf("%s: %+v", text, v)
		}
		var unknown *UnknownError
		if err := Decode([]byte(text), &v, Refuse); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var unknown *UnknownError
	if err := Decode([]byte(`{"list":[{},{"by":{"k":{"Deep":1}}}]}`), new(sample), Refuse); !errors.As(err, &unknown) || unknown.Path != "list[1].by.k.Deep" {
		t.Error(err)
	}
	var v sample
	if err := Decode([]byte(`{"deep":"d","Named":"n","dry\u0052un":true}`), &v, Refuse); err != nil || *v.Deep != "d" || v.Named != "n" || !v.DryRun {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestDecodeFaults: what cannot be kept faithfully is refused with its place.
func TestDecodeFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1,"n":2}`:                "n must be given only once",
		`{"raw":{"a":{"b":1,"b":2}}}`:  "raw.a.b must be given only once",
		`{"x":{"b":1,"\u0062":2}}`:     "x.b must be given only once", // also where the reader does not look
		`{"list":[{"deep":"\ud800"}]}`: "list[0].deep must be valid Unicode, without half surrogate pairs",
		`{"any":["\udc00\ud800"]}`:     "any[0] must be valid Unicode, without half surrogate pairs",
		`{"Named":"a\u0000"}`:          "Named must not contain the NUL character",
		`{"n":1e999}`:                  "n must be a number that fits 64-bit floating point",
		`[]`:                           "definition must be an object, not an array",
		`null`:                         "definition must be an object, not null",
		strings.Repeat(`{"inner":`, 300) + "1" + strings.Repeat("}", 300): "must nest at most 256 levels",
	} {
		var fault *Error
		if err := Decode([]byte(text), new(sample), Ignore); !errors.As(err, &fault) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", " ", "{", `{"n":1}x`, `{"n":01}`, "{\"n\":\"\xff\"}", `{"n":1,}`, `{} {}`} {
		var syntax *jsonscan.SyntaxError
		if err := Decode([]byte(text), new(sample), Ignore); !errors.As(err, &syntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var mistyped *json.UnmarshalTypeError
	if err := Decode([]byte(`{"inner":{"dryRun":1}}`), new(sample), Ignore); !errors.As(err, &mistyped) || mistyped.Field != "inner.dryRun" {
		t.Error(err)
	}
}

// TestDecodeKeepsNumbers: what is kept raw is canonical, its numbers as written.
func TestDecodeKeepsNumbers(t *testing.T) {
	var v sample
	err := Decode([]byte("{ \"raw\" : { \"a\" : 12345678901234567890.10 , \"b\":\"\\u003c\" } }"), &v, Ignore)
	if err != nil || string(v.Raw) != `{"a":12345678901234567890.10,"b":"<"}` {
		t.Errorf("%s, %v", v.Raw, err)
	}
}

// FuzzDecode: what Decode takes, encoding/json takes, and of a text whose names are
// exact both make the same; what json refuses, Decode refuses.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"dryRun":true,"DryRun":false}`, `{"list":[{"n":1.5,"by":{"k":{"raw":[1]}}}],"array":[1,2],"any":{"a":null}}`, `{"raws":{"A":1,"a":2}}`, `{"inner":null}`, `{"a":"\ud83d\ude00"}`, "{\"li\u017ft_id\":[\"x\"]}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var have, strict, want sample
		err := Decode(text, &have, Ignore)
		plain := json.Unmarshal(text, &want)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q is taken", text)
		}
		if Decode(text, &strict, Refuse) != nil {
			return
		}
		// All names are those of fields: nothing was passed over.
		if err != nil || plain != nil {
			t.Fatalf("%q: strictly nil, else %v, plainly %v", text, err, plain)
		}
		// Raw values differ in form only.
		for _, v := range []*sample{&have, &want, &strict} {
			compact(v)
		}
		if !reflect.DeepEqual(have, strict) {
			t.Errorf("%q: %+v, strictly %+v", text, have, strict)
		}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%q: %+v, plainly %+v", text, have, want)
		}
	})
}

// compact brings raw values into one form.
func compact(v *sample) {
	same := func(raw json.RawMessage) json.RawMessage {
		if raw == nil {
			return nil
		}
		var x any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&x) != nil {
			return raw
		}
		b, _ := json.Marshal(x)
		return b
	}
	v.Raw = same(v.Raw)
	for k := range v.Raws {
		v.Raws[k] = same(v.Raws[k])
	}
	if v.Inner != nil {
		compact(v.Inner)
	}
	for i := range v.List {
		compact(&v.List[i])
	}
	for k, x := range v.By {
		compact(&x)
		v.By[k] = x
	}
}

// TestDecodePaths: a value of another type is named as the JSON names it, whatever struct
// its field is embedded from.
func TestDecodePaths(t *testing.T) {
	for text, want := range map[string]string{
		`{"deep":1}`: "deep", `{"dryRun":1}`: "dryRun", `{"inner":{"deep":1}}`: "inner.deep", `{"list":[{"n":"x"}]}`: "list.n",
	} {
		var mistyped *json.UnmarshalTypeError
		if err := Decode([]byte(text), new(sample), Ignore); !errors.As(err, &mistyped) || mistyped.Field != want {
			t.Errorf("%s: %v, want the field %s", text, err, want)
		}
	}
}
