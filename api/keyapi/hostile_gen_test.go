package keyapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// hostile makes requests that a careless or malicious client might send, out of
// ones that are right.
type hostile struct{ *rand.Rand }

func pick1[T any](h hostile, list []T) T { return list[h.IntN(len(list))] }

// values are texts that stand where a value of JSON should; not all are JSON.
var values = slices.Concat([]string{
	"null", "true", "false", "0", "-1", "1.5", "-0", "1e999", "-1e999", "1e-999", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709552", "18446744073709551616",
	"123456789012345678901234567890", "2147483648", "0.1", "0.09999", "60.0001", "1e2", "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10",
	`""`, `" "`, `"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `"\u0007"`, "\"\xff\xfe\"", "\"\xc3\x28\"", "\"raw\nline\"", `"\u2028"`, `"\ufeff"`, `"\u202e"`, `"\x"`, `"unclosed`,
	"[]", "{}", "[[]]", "[null]", `[""]`, `["x",1,null,{}]`, `{"":1}`, `{"a":{"a":{"a":null}}}`, `{"a":1,"a":2}`, `{"$ne":null}`, `{"__proto__":{}}`,
	`"0000-00-00"`, `"0000-01-01T00:00:00Z"`, `"-0001-01-01"`, `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999Z"`, `"10000-01-01T00:00:00Z"`, `"2016-12-31T23:59:60Z"`, `"2025-02-30"`, `"2025-03-01T25:00:00Z"`,
	`"2025-01-01T00:00:00+99:99"`, `"292277026597-01-01T00:00:00Z"`, `"1"`, `"1.5"`, `"true"`, `"null"`, `"guest"`,
	`"{{"`, `"{{first_name | default:"`, `"{{ a.b.c | upper | nothing }}"`, `"{% if x %}"`, `"}}{{"`, `"<script>{{first_name}}</script>"`, `"<a href='{{x}}'>"`, `"<!--"`, `"' OR 1=1 --"`, `"%s%n%d"`,
	`"javascript:alert(1)"`, `"http://127.0.0.1/"`, `"https://[::1"`, `"https://user:pass@host/"`, `"//evil.example"`, `"a@b@c"`, `"\"a b\"@x.io"`, `"a@x.io\r\nBcc: b@x.io"`, `"@"`, `"a@"`, `"ünï@ëxample.org"`, `"Ada <a@x.io>"`,
	`"+1"`, `"+"`, `"0"`, `"١٢٣"`, `"../../etc/passwd"`, `"seg_"`, `"prf_00000000000000000000000000000000"`, `"lst_zz"`, `"contacts:write"`, `"email"`, `"subscribed"`, `"DRAFT"`, `"fcm"`,
}, []string{
	quoted(300), quoted(513), quoted(5000), quoted(70_000), `"` + strings.Repeat(`\u0000`, 600) + `"`, `"` + strings.Repeat("😀", 500) + `"`, `"` + strings.Repeat("{{x}}", 2000) + `"`,
	strings.Repeat("[", 300) + strings.Repeat("]", 300), strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	"[" + strings.Repeat(`"x",`, 5000) + `"x"]`, "[" + strings.Repeat(`{},`, 1000) + `{}]`, strings.Repeat("9", 1000), "0." + strings.Repeat("3", 1000),
	deepGroup(40), deepGroup(3000),
})

func quoted(n int) string { return `"` + strings.Repeat("x", n) + `"` }

func deepGroup(n int) string {
	return strings.Repeat(`{"match":"all","conditions":[`, n) + `{"kind":"activity","event":"x"}` + strings.Repeat(`]}`, n)
}

// bodies are what is sent in the place of JSON.
var bodies = []string{"", " ", "\x00", "\xef\xbb\xbf{}", "null", "[]", `"x"`, "1", "{", "}", "{}", "{}{}", "{} x", "[{}]", "<xml/>", "a=b&c=d", "\xff\xff", strings.Repeat("{", 1000), "nul", `{"":""}`, `{"a"}`, `{'a':1}`, `{"a":1,}`, "//x\n{}", "\r\n\r\n"}

// body changes a body.
func (h hostile) body(valid string) string {
	switch h.IntN(12) {
	case 0:
		return valid
	case 1:
		return pick1(h, bodies)
	case 2: // cut off
		return valid[:h.IntN(len(valid)+1)]
	case 3: // a byte is another
		b := []byte(valid)
		if len(b) > 0 {
			b[h.IntN(len(b))] = byte(h.Uint32())
		}
		return string(b)
	case 4:
		return valid + pick1(h, bodies)
	}
	return h.tree(valid)
}

// tree changes one or two values of a JSON body, or names twice what is named
// once, or adds unknown fields.
func (h hostile) tree(valid string) string {
	d := json.NewDecoder(strings.NewReader(valid))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return pick1(h, values)
	}
	n := 0
	count(v, &n)
	var b bytes.Buffer
	at := map[int]bool{h.IntN(n): true}
	if h.IntN(4) == 0 {
		at[h.IntN(n)] = true
	}
	n = 0
	h.write(&b, v, at, &n)
	return b.String()
}

func count(v any, n *int) {
	*n++
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			count(x, n)
		}
	case []any:
		for _, x := range v {
			count(x, n)
		}
	}
}

func (h hostile) write(b *bytes.Buffer, v any, at map[int]bool, n *int) {
	i := *n
	*n++
	_, isObject := v.(map[string]any)
	if at[i] && (!isObject || h.IntN(3) == 0) {
		b.WriteString(pick1(h, values))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		first := true
		for _, k := range sortedKeys(v) {
			times := 1
			if at[i] && h.IntN(3) == 0 {
				times = h.IntN(3)
			}
			for j := range times {
				if !first {
					b.WriteByte(',')
				}
				first = false
				key, _ := json.Marshal(k)
				b.Write(key)
				b.WriteByte(':')
				if j > 0 {
					b.WriteString(pick1(h, values))
				} else {
					h.write(b, v[k], at, n)
				}
			}
		}
		if at[i] && h.IntN(2) == 0 {
			if !first {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "%s:%s", pick1(h, []string{`"unknown"`, `""`, `"_id"`, `"admin"`, `"\u0000"`, `"id"`, quoted(300)}), pick1(h, values))
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for j, x := range v {
			if j > 0 {
				b.WriteByte(',')
			}
			h.write(b, x, at, n)
		}
		b.WriteByte(']')
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

func sortedKeys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// parts are what stands in the place of a part of a path.
var parts = []string{"%00", "%2e%2e", "..", ".", "%2F", "%2f..%2f", "%ff", "%C3%28", "%", "%zz", "%25", "a%0d%0aX:%20y", "%20", "null", "0", "-1", "1e9", "{id}", "*", "%u0041", "ünï", "%F0%9F%98%80", "seg_", "prf_",
	"prf_00000000000000000000000000000000", "prf_ZZ", strings.Repeat("a", 3000), strings.Repeat("%61", 900), ";", "a;b", "'", `"`, "<x>", "\\", "a+b", "18446744073709551616", "fcm", "webpush", "sms", "generic", "mail", "ses", ""}

// broken are parts that no request may have.
var broken = []string{"\x00", "\x01", "\x7f", "a b", "\xff", "\t"}

var queryNames = []string{"limit", "cursor", "from", "to", "granularity", "email", "external_id", "phone", "list_id", "campaign_id", "event_type", "profile_id", "after", "channel", "secret", "q", ""}

var queryValues = []string{"", "0", "-1", "1", "1000", "1001", "99999999999999999999", "1.5", "x", "%00", "%ff", "%C3%28", "%", "%zz", "AAAA", "AQAAAAAAAAAA", "BAAAAAAAAAAAAA", "Bv____8", "Av////8=", "_____w", "day", "hour", "month", "2025-01-01", "0000-01-01", "10000-01-01",
	"1970-01-01", "2200-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "2025-01-01T00:00:00%2B99:99", "-0001-01-01", "0-0", "1-1", "9223372036854775807-4294967295", "-1--1", "a%40b.example", "%2B49", "' OR 1=1", strings.Repeat("x", 2000), "a&a=b", "[]", "%0a"}

// target changes path or query; malformed says that it is not even HTTP.
func (h hostile) target(valid string) (target string, malformed bool) {
	path, query, _ := strings.Cut(valid, "?")
	switch h.IntN(6) {
	case 0:
		list := strings.Split(path, "/")
		at := 1 + h.IntN(len(list)-1)
		list[at] = pick1(h, parts)
		if h.IntN(10) == 0 {
			list[at], malformed = pick1(h, broken), true
		}
		path = strings.Join(list, "/")
	case 1, 2:
		args, _ := url.ParseQuery(query)
		names := slices.Clone(queryNames)
		for k := range args {
			names = append(names, k, k, k)
		}
		slices.Sort(names)
		if query != "" && h.IntN(3) == 0 {
			query += "&"
		} else {
			query = ""
		}
		query += pick1(h, names) + "=" + strings.ReplaceAll(pick1(h, queryValues), " ", "%20")
	case 3:
		if h.IntN(10) == 0 {
			path += pick1(h, []string{"/", "//", "/..", "/x", "%2F", "?", "#x"})
		}
	}
	if query != "" {
		path += "?" + query
	}
	return path, malformed
}

var (
	contentTypes = []string{"text/plain", "", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/JSON", "json", "application/json, text/html", "*/*"}
	codings      = []string{"gzip", "identity", "br", "deflate", "gzip, gzip", "x"}
	methods      = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "X"}
)
