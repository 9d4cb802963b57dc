package historytest

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// Micros is whole numbers in millionths.
func Micros(units ...int64) []segment.Int128 {
	var out []segment.Int128
	for _, u := range units {
		out = append(out, int128.From(u*segment.MicrosPerUnit))
	}
	return out
}

// OneEach appends one event per text of properties; event i is of ordinal i.
func OneEach(t *testing.T, s query.History, properties []string) (upTo int64) {
	t.Helper()
	b := new(query.Batch)
	for i, p := range properties {
		b.Account = append(b.Account, 1)
		b.Offset = append(b.Offset, int64(i))
		b.Index = append(b.Index, 0)
		b.Ordinal = append(b.Ordinal, uint32(i))
		b.TimeMs = append(b.TimeMs, 0)
		b.EventType.Append([]byte("e"))
		b.Properties.Append([]byte(p))
		b.IdempotencyKey.Append(nil)
	}
	b.To = int64(len(properties))
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return b.To
}

// hostileKeys are keys that mean something in JSON paths, JSON pointers, SQL or
// JSON.
var hostileKeys = []string{
	"a", "0", "1", "00", "-1", "+1", "-", "#", "#-1", "*", "**", "$", "$.a", "@", ".", " ", "a b", "'", "''", `"`, `a"b`, `\`, `\"`,
	"/", "~", "~0", "~1", "~01", "a/b", "[0]", "[*]", "a[0]", "?", "$1", ":v", "--", "; DROP TABLE events", "é", "e\u0301", "日本", "😀",
	"\n", "\t", "\x01", "\u2028", "null", "true", strings.Repeat("k", 200), "9223372036854775808", "18446744073709551616",
}

// HostilePaths asks for paths of hostile keys in objects and arrays of
// such keys, and compares with segment.Predicate.
func HostilePaths(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(15, 16))
	key := func() string { return hostileKeys[rng.IntN(len(hostileKeys))] }
	var value func(depth int) string
	value = func(depth int) string {
		switch n := rng.IntN(10); {
		case depth > 0 && n < 6:
			parts := map[string]string{}
			for range 12 {
				parts[key()] = value(depth - 1)
			}
			var list []string
			for k, v := range parts {
				list = append(list, string(rawjson.AppendString(nil, k))+":"+v)
			}
			return "{" + strings.Join(list, ",") + "}"
		case depth > 0 && n < 8:
			return "[" + value(depth-1) + "," + value(depth-1) + "]"
		case n == 9:
			return "null"
		}
		return []string{"1", `"1"`, "true", "[1]", "{}"}[rng.IntN(5)]
	}
	properties := []string{"", "{}"}
	for range 60 {
		var parts []string
		for _, i := range rng.Perm(len(hostileKeys))[:25] {
			parts = append(parts, string(rawjson.AppendString(nil, hostileKeys[i]))+":"+value(2))
		}
		properties = append(properties, "{"+strings.Join(parts, ",")+"}")
	}
	upTo := OneEach(t, s, properties)
	found := uint64(0)
	for i := range Scale(testlevel.Count(len(hostileKeys), len(hostileKeys)*3/2)) {
		path := []string{hostileKeys[i%len(hostileKeys)]}
		for range i % 3 {
			path = append(path, key())
		}
		for _, p := range []segment.Predicate{
			{Path: path, Op: segment.OpExists},
			{Path: path, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueNumber, Num: 1}}},
		} {
			want := roaring.New()
			for o, text := range properties {
				if p.Match([]byte(text), 0) {
					want.Add(uint32(o))
				}
			}
			leaf := CountLeaf("e", 1)
			leaf.Where = []segment.Predicate{p}
			got, err := s.Activity(context.Background(), query.ActivityQuery{Cut: query.Cut{UpTo: upTo}, Account: 1, Leaf: leaf})
			if err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			if !got.Equals(want) {
				t.Fatalf("%q %s: %v, want %v", path, p.Op, got, want)
			}
			found += got.GetCardinality()
		}
	}
	if found == 0 {
		t.Fatal("no path led anywhere")
	}
}

// Scale is n, with MUSTER_LONG=1 fifty times n.
func Scale(n int) int {
	if testlevel.Long() {
		return 50 * n
	}
	return n
}

// TextOperators compares the operators on texts with segment.Predicate, on texts
// that are alike: by bytes, with wildcards, characters of several bytes and
// nothing in them.
func TextOperators(t *testing.T, open Open) {
	s := open(t)
	texts := []string{"", "a", "A", "ab", "ba", "aba", "é", "e\u0301", "\u00e9a", "%", "_", "a%", "\\", "a\\b", "'", `"`, "a\nb", "\x00", "a\x00", "日本", "本", "😀a", "10", "9", "true", "/"}
	properties := []string{"", "{}", `{"v":10}`, `{"v":true}`, `{"v":null}`, `{"v":{"a":"a"}}`}
	for _, text := range texts {
		quoted := string(rawjson.AppendString(nil, text))
		properties = append(properties, `{"v":`+quoted+`}`, `{"v":[1,`+quoted+`]}`)
	}
	upTo := OneEach(t, s, properties)
	for i, text := range texts {
		for j, op := range []segment.Op{segment.OpContains, segment.OpStartsWith, segment.OpEndsWith, segment.OpNotContains, segment.OpEq, segment.OpNe, segment.OpLt, segment.OpGe} {
			if (i+j)%2 == 0 && Scale(1) == 1 {
				continue // half of them, unless there is time
			}
			p := segment.Predicate{Path: []string{"v"}, Op: op, Values: []segment.Value{{Kind: segment.ValueString, Str: text}}}
			want := roaring.New()
			for o, x := range properties {
				if p.Match([]byte(x), 0) {
					want.Add(uint32(o))
				}
			}
			leaf := CountLeaf("e", 1)
			leaf.Where = []segment.Predicate{p}
			got, err := s.Activity(context.Background(), query.ActivityQuery{Cut: query.Cut{UpTo: upTo}, Account: 1, Leaf: leaf})
			if err != nil || !got.Equals(want) {
				t.Fatalf("%q %s: %v, want %v (%v)", text, op, got, want, err)
			}
		}
	}
}
