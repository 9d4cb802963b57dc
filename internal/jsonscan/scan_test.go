package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// scan canonicalises a whole text. The fault is "" or a short form of it.
func scan(s *Scanner, src string) (text, fault string, err *SyntaxError) {
	s.Reset([]byte(src))
	out, i := s.Value(s.Space(0), 0)
	if i >= 0 {
		i = s.End(i)
	}
	if i < 0 {
		return "", "", s.Err()
	}
	if f := s.Fault(); f.Kind != FaultNone {
		name := map[FaultKind]string{
			FaultDuplicate: "duplicate", FaultDepth: "depth", FaultRange: "range",
			FaultSurrogate: "surrogate", FaultNUL: "nul", FaultSize: "size",
		}[f.Kind]
		return "", strings.TrimSpace(fmt.Sprintf("%s %s %s", name, f.Path, f.Key)), nil
	}
	return string(out), "", nil
}

func TestValueCanonicalText(t *testing.T) {
	tests := []struct{ in, want string }{
		{`1`, `1`},
		{` "a" `, `"a"`},
		{`-0.50E+3`, `-0.50E+3`},
		{`[ ]`, `[]`},
		{`{ }`, `{}`},
		{"{\n\t\"a\" : [ 1 , 2.0 , { \"b\" : null } ] ,\r\n \"c\":true}", `{"a":[1,2.0,{"b":null}],"c":true}`},
		{`"\/\u0041\u00e9\u20AC\ud83d\ude00"`, `"/Aé€😀"`},
		{`"\"\\\b\f\n\r\t"`, `"\"\\\b\f\n\r\t"`},
		{`"\u0022\u005C\u0008\u000C\u000A\u000D\u0009"`, `"\"\\\b\f\n\r\t"`},
		{`"\u001B\u001b\u001F"`, `"\u001b\u001b\u001f"`},
		{`"\u007f` + "\x7f" + `"`, "\"\x7f\x7f\""},
		{`{"\u0061 ":"x","b\/":{"c":"\u0041 long enough to fill words"}}`, `{"a ":"x","b/":{"c":"A long enough to fill words"}}`},
		{`{"é":"naïve café, twice: naïve café"}`, `{"é":"naïve café, twice: naïve café"}`},
		{`1e308`, `1e308`},
		{`0e999999999999999999999`, `0e999999999999999999999`},
		{`1e-999`, `1e-999`},
		{`[0,-1,10,1234567890123456,12345678901234567890]`, `[0,-1,10,1234567890123456,12345678901234567890]`},
		{`[true,false,null]`, `[true,false,null]`},
		{`{"":1," ":2}`, `{"":1," ":2}`},
	}
	s := New(8, 1<<20)
	for _, tt := range tests {
		got, fault, err := scan(s, tt.in)
		if err != nil || fault != "" || got != tt.want {
			t.Errorf("%s: got %s, fault %q, error %v; want %s", tt.in, got, fault, err, tt.want)
		}
		again, fault, err := scan(s, got)
		if err != nil || fault != "" || again != got {
			t.Errorf("%s: canonical text is not canonical: %s, fault %q, error %v", tt.in, again, fault, err)
		}
	}
}

func TestValueFaults(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"a":1,"a":2}`, `duplicate  a`},
		{`{"a":1,"\u0061":2}`, `duplicate  a`},
		{`{"\u00e9":1,"é":2}`, `duplicate  é`},
		{`{"x":{"y":[0,{"a":1,"b":1,"a":[]}]}}`, `duplicate .x.y[1] a`},
		{`{"a":1e309}`, `range .a`},
		{`{"a":{"b":[1,[2,-1e400]]}}`, `range .a.b[1][1]`},
		{`1` + strings.Repeat("0", 309), `range`},
		{`"\ud800"`, `surrogate`},
		{`"\ud800\u0041"`, `surrogate`},
		{`"\udc00\ud800"`, `surrogate`},
		{`"\ud800x"`, `surrogate`},
		{`{"p":"\udc00"}`, `surrogate .p`},
		{`{"p":{"\ud83d":1}}`, `surrogate .p`},
		{`{"p":["\u0000"]}`, `nul .p[0]`},
		{`{"a":[1],"b":{"c":[[[[]]]]}}`, `depth .b.c[0][0]`},
		{`{"a":{"a":{"a":{"a":{}}}}}`, `depth .a.a.a.a`},
		{`[[[[[[[[[[` + `]]]]]]]]]]`, `depth [0][0][0][0]`},
		{`{"` + strings.Repeat("k", 300) + `":1e999}`, `range .` + strings.Repeat("k", 77) + `…`},
	}
	s := New(4, 1<<20)
	for _, tt := range tests {
		if got, fault, err := scan(s, tt.in); err != nil || fault != tt.want {
			t.Errorf("%s: got %s, fault %q, error %v; want fault %q", tt.in, got, fault, err, tt.want)
		}
	}
}

// A key that repeats among thousands is found, however the keys are made, and
// without comparing each with each.
func TestValueManyKeys(t *testing.T) {
	s := New(4, 4<<20)
	for _, n := range []int{scanLimit - 1, scanLimit, scanLimit + 1, scanLimit + 2, 1000, 50_000} {
		var b strings.Builder
		b.WriteString(`{"outer":{`)
		for i := range n {
			// The first and last eight bytes are the same in all keys, so that
			// all fingerprints collide.
			fmt.Fprintf(&b, `"prefix--%06d--suffix":%d,`, i, i)
		}
		distinct := b.String()[:b.Len()-1] + "}}"
		if _, fault, err := scan(s, distinct); fault != "" || err != nil {
			t.Fatalf("%d keys: fault %q, error %v", n, fault, err)
		}
		b.WriteString(`"prefix--000007--suffix":0}}`)
		if _, fault, err := scan(s, b.String()); fault != "duplicate .outer prefix--000007--suffix" || err != nil {
			t.Fatalf("%d keys: fault %q, error %v", n, fault, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		in     string
		offset int
	}{
		{``, 0}, {` `, 1}, {`{`, 1}, {`[`, 1}, {`"`, 1}, {`"abc`, 4}, {`tru`, 0}, {`nul`, 0}, {`falze`, 0},
		{`{"a"}`, 4}, {`{"a":}`, 5}, {`{"a":1,}`, 7}, {`{,}`, 1}, {`{a:1}`, 1}, {`[1,]`, 3}, {`[1 2]`, 3},
		{`{"a":1 "b":2}`, 7}, {`{"a":1]`, 6}, {`[1}`, 2}, {`1 2`, 2}, {`{} {}`, 3}, {`01`, 1}, {`-`, 1},
		{`-a`, 1}, {`1.`, 2}, {`1.e5`, 2}, {`1e`, 2}, {`1e+`, 3}, {`.5`, 0}, {`+1`, 0}, {`0x10`, 1}, {`NaN`, 0},
		{`'a'`, 0}, {`"\x"`, 2}, {`"\u12"`, 3}, {`"\u12g4"`, 3}, {`"\`, 2}, {"\"a\nb\"", 2}, {"\"a\x00b\"", 2},
		{"\"aaaaaaaaaaaaaaa\x1f\"", 16}, {"\"\xff\"", 1}, {"\"abc\xc3\"", 4}, {"\"\xed\xa0\x80\"", 1},
		{"\"\\n\xff\"", 3}, {"\xef\xbb\xbf{}", 0}, {"{\"a\xff\":1}", 3}, {`{"a":1}x`, 7}, {"\v1", 0},
		{`{"a":"\u0000","b":}`, 18}, {`{"a":1,"a":2`, 12}, {`[[[[[[[[[[[[`, 12}, {`[[[[[[[[[[[[]]]]]]]]]]]`, 23},
		{"/* no */ 1", 0}, {`[1,2,3`, 6}, {`{"a":12`, 7}, {`{"a":123456789.`, 15},
	}
	s := New(4, 1<<20)
	for _, tt := range tests {
		if json.Valid([]byte(tt.in)) && utf8.ValidString(tt.in) {
			t.Errorf("%q is valid: a wrong test", tt.in)
		}
		got, fault, err := scan(s, tt.in)
		if err == nil {
			t.Errorf("%q: no error but %s, fault %q", tt.in, got, fault)
		} else if err.Offset != tt.offset {
			t.Errorf("%q: %v; want offset %d", tt.in, err, tt.offset)
		}
	}
}

// The limit counts canonical text: white space is free.
func TestValueSize(t *testing.T) {
	for _, tt := range []struct{ in, fault string }{
		{`{"a":"12345678","b":1}`, ""},
		{`{"a":"12345678","b":12}`, "size"},
		{"  {  \"a\" :\t\"1234\\u00356\\u00378\"  , \"b\" :  1 } ", ""},
		{"  {  \"a\" :\t\"1234\\u00356\\u00378\"  , \"b\" :  12 } ", "size"},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5}`, "size"},
	} {
		s := New(4, len(`{"a":"12345678","b":1}`))
		if _, fault, err := scan(s, tt.in); fault != tt.fault || err != nil {
			t.Errorf("%s: fault %q, error %v", tt.in, fault, err)
		}
	}
}

func TestSkipDeep(t *testing.T) {
	const n = 1 << 20
	s := New(4, 1<<20)
	src := strings.Repeat(`[{"a":`, n) + "1" + strings.Repeat("}]", n)
	if _, fault, err := scan(s, src); err != nil || fault != "depth [0].a[0].a" {
		t.Fatalf("fault %q, error %v", fault, err)
	}
	if cap(s.bits) > n {
		t.Fatalf("%d words for %d levels", cap(s.bits), 2*n)
	}
	if _, _, err := scan(s, strings.Repeat("[", n)); err == nil {
		t.Fatal("an open array is no error")
	}
}

func TestObject(t *testing.T) {
	var o Object
	for range 2 {
		o.Reset()
		for i := range 100 {
			if o.Add([]byte(strconv.Itoa(i))) {
				t.Fatalf("%d is new", i)
			}
		}
		for i := range 100 {
			if !o.Add([]byte(strconv.Itoa(i))) {
				t.Fatalf("%d is not new", i)
			}
		}
	}
}

func TestText(t *testing.T) {
	s := New(1, 1<<20)
	for _, tt := range []struct{ in, want string }{
		{`"abc"`, "abc"}, {`""`, ""}, {`"\u0041\n\ud83d\ude00é"`, "A\n😀é"}, {`"é"`, "é"}, {`"a\"b\\c\/d"`, `a"b\c/d`},
	} {
		s.Reset([]byte(tt.in))
		got, i := s.Text(0)
		if string(got) != tt.want || i != len(tt.in) || s.HasFault() {
			t.Errorf("%s: %q, next %d, fault %v", tt.in, got, i, s.HasFault())
		}
	}
	s.Reset([]byte(`"a\u0000b"`))
	if got, i := s.Text(0); got != nil || i != 10 || s.Fault().Kind != FaultNUL {
		t.Errorf("NUL: %q, next %d, fault %v", got, i, s.Fault())
	}
}

func TestAppendQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "in")
		var back string
		if err := json.Unmarshal(AppendQuoted(nil, []byte(in)), &back); err != nil || back != in {
			t.Fatalf("%q came back as %q: %v", in, back, err)
		}
	})
}

// plain agrees with a loop over single bytes, at every alignment.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.SampledFrom([]byte("aA~\x7f\x80\xff \x1f\x00\"\\!#[]\xa2\xdc")), 0, 40).Draw(t, "src")
		from := rapid.IntRange(0, len(src)).Draw(t, "from")
		want, high := from, false
		for want < len(src) && src[want] >= 0x20 && src[want] != '"' && src[want] != '\\' {
			high = high || src[want] >= 0x80
			want++
		}
		got, h := plain(src, from)
		if got != want || (h != 0) != high {
			t.Fatalf("%q from %d: %d, %v; want %d, %v", src, from, got, h != 0, want, high)
		}
	})
}

// check compares the scanner with encoding/json on one text.
func check(t interface{ Fatalf(string, ...any) }, s *Scanner, src []byte) {
	got, fault, err := scan(s, string(src))
	valid := json.Valid(src) && utf8.Valid(src)
	if valid != (err == nil) {
		t.Fatalf("%q: error %v, encoding/json says valid = %v", src, err, valid)
	}
	s.Reset(src)
	skipped := s.Skip(0)
	if skipped >= 0 {
		skipped = s.End(skipped)
	}
	if valid != (skipped >= 0) {
		t.Fatalf("%q: Skip says %d, encoding/json says valid = %v", src, skipped, valid)
	}
	if err != nil || fault != "" {
		return
	}
	// Decoding both gives the same tokens, with numbers as written.
	if a, b := tokens(t, src), tokens(t, []byte(got)); a != b {
		t.Fatalf("%q became %q: %s is not %s", src, got, b, a)
	}
	var plain any
	if err := json.Unmarshal(src, &plain); err != nil {
		t.Fatalf("%q has no fault, but: %v", src, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != got {
		t.Fatalf("%q became %q, which holds white space: %v", src, got, err)
	}
	again, fault, err := scan(s, got)
	if err != nil || fault != "" || again != got {
		t.Fatalf("%q became %q and then %q (fault %q, error %v)", src, got, again, fault, err)
	}
}

func tokens(t interface{ Fatalf(string, ...any) }, src []byte) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if err != nil {
			if err.Error() != "EOF" {
				t.Fatalf("%q: %v", src, err)
			}
			return b.String()
		}
		if n, ok := tok.(json.Number); ok {
			if v, err := n.Float64(); err != nil || math.IsInf(v, 0) {
				t.Fatalf("%q: number %s was let through", src, n)
			}
		}
		fmt.Fprintf(&b, "%T %q;", tok, fmt.Sprint(tok))
	}
}

// Canonicalising keeps the meaning and is idempotent, for documents made at
// random with random white space and random escapes.
func TestValueKeepsMeaning(t *testing.T) {
	s := New(64, 1<<20)
	rapid.Check(t, func(t *rapid.T) {
		check(t, s, drawValue(t, 0))
	})
}

func drawValue(t *rapid.T, depth int) []byte {
	space := func() string {
		return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "  \r\n"}).Draw(t, "space")
	}
	kinds := 5
	if depth > 4 {
		kinds = 3
	}
	var b bytes.Buffer
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		b.Write(drawString(t))
	case 1:
		b.WriteString(rapid.SampledFrom([]string{
			"0", "-0", "1", "12345678901234567890", "1.5", "-2.50", "1e3", "1E-7", "0.1e+2", "1e308", "1e309", "-1e999", "1e-400",
		}).Draw(t, "number"))
	case 2:
		b.WriteString(rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word"))
	case 3:
		b.WriteString("[" + space())
		for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
			if i > 0 {
				b.WriteString(space() + "," + space())
			}
			b.Write(drawValue(t, depth+1))
		}
		b.WriteString(space() + "]")
	case 4:
		b.WriteString("{" + space())
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			if i > 0 {
				b.WriteString(space() + "," + space())
			}
			b.Write(drawString(t))
			b.WriteString(space() + ":" + space())
			b.Write(drawValue(t, depth+1))
		}
		b.WriteString(space() + "}")
	}
	return b.Bytes()
}

func drawString(t *rapid.T) []byte {
	b := []byte{'"'}
	for range rapid.IntRange(0, 12).Draw(t, "characters") {
		b = append(b, rapid.SampledFrom([]string{
			"a", "key", "some longer text without escapes", "é", "€", "😀", `\"`, `\\`, `\/`, `\n`, `\t`, `\b`, `\f`, `\r`,
			`\u0041`, `\u00e9`, `\u001F`, `\u001f`, `\u000a`, `\u0022`, `\u005c`, `\ud83d\ude00`, `\u2028`, "\u2028", "\x7f", `\ud800`, `\u0000`,
		}).Draw(t, "character")...)
	}
	return append(b, '"')
}

func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5e3,{"b":null}],"c":"\u00e9\n"}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `[[[[1]]]]`, ` [ true , false ] `,
		"\"\xff\"", `1e309`, `{"":{"":""}}`, `"\u001F\u0000"`, `{"\u0061":1,"b":"\/"}`, `-0.0E-0`, `{"a":1}x`, "\ufeff1",
	} {
		f.Add([]byte(seed))
	}
	s := New(64, 1<<20)
	f.Fuzz(func(t *testing.T, src []byte) {
		if bytes.Count(src, []byte{'['})+bytes.Count(src, []byte{'{'}) > 5000 {
			t.Skip("deeper than encoding/json reads")
		}
		check(t, s, src)
	})
}

func TestAllocations(t *testing.T) {
	s := New(32, 1<<20)
	src := []byte(`{"value": 49.9, "currency": "EUR", "items": [{"sku": "a\/1", "n": 1}, {"sku": "b\u0041", "n": 2}], "note": "café"}`)
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(src)
		if _, i := s.Value(0, 0); i != len(src) {
			t.Fatal(s.Err())
		}
		s.Reset(src)
		if i := s.Skip(0); i != len(src) {
			t.Fatal(s.Err())
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkValue(b *testing.B) {
	for name, src := range map[string]string{
		"compact": `{"value":49.9,"currency":"EUR","product_id":"sku-12345","quantity":2,"category":"garden","tags":["new","sale"],"nested":{"a":1,"b":true}}`,
		"spaced":  `{"value": 49.9, "currency": "EUR", "product_id": "sku-12345", "quantity": 2, "category": "garden", "tags": ["new", "sale"], "nested": {"a": 1, "b": true}}`,
	} {
		b.Run(name, func(b *testing.B) {
			s, src := New(32, 1<<20), []byte(src)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				s.Reset(src)
				if _, i := s.Value(0, 0); i != len(src) {
					b.Fatal(s.Err())
				}
			}
		})
	}
}
