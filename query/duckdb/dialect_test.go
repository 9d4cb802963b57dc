package duckdb

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/jsontext"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

func micros(units ...int64) []segment.Int128 {
	var out []segment.Int128
	for _, u := range units {
		out = append(out, int128.From(u*segment.MicrosPerUnit))
	}
	return out
}

// oneEach appends one event per text of properties; event i is of ordinal i.
func oneEach(t *testing.T, s *Store, properties []string) (upTo int64) {
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

// none stands for NULL in the answers of each.
const none = -math.MaxInt64

// each evaluates an expression of j, the JSON behind "v", for each event.
func each(t *testing.T, s *Store, expr string) (values []int64) {
	t.Helper()
	var args []any
	j := dialect{}.Extract("properties", []string{"v"}, func(v any) string { args = append(args, v); return "$1" })
	sql := fmt.Sprintf(`SELECT coalesce(%s, %d::BIGINT) FROM (SELECT record_offset, %s AS j FROM events) ORDER BY record_offset`, expr, int64(none), j)
	err := s.writer.query(context.Background(), sql, args, func(ch chunk) error {
		values = append(values, column[int64](ch, 0)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func scale(n int) int {
	if os.Getenv("MUSTER_LONG") != "" {
		return 50 * n
	}
	return n
}

// TestS1Micros compares the millionths of numbers with segment.MicrosOf: ties
// and near ties at the seventh decimal, many digits, all magnitudes, all ways
// to write a number.
func TestS1Micros(t *testing.T) {
	s := openTest(t)
	rng := rand.New(rand.NewPCG(11, 12))
	var numbers []float64
	for range scale(2_500) {
		sign := float64(1 - 2*rng.IntN(2))
		// A decimal with a 5 at the seventh decimal, and its neighbours.
		whole := rng.Uint64N(uint64(math.Pow10(rng.IntN(13))))
		tie, _ := strconv.ParseFloat(fmt.Sprintf("%d.%06d5", whole, rng.IntN(1_000_000)), 64)
		numbers = append(numbers, sign*tie, sign*math.Nextafter(tie, 0), sign*math.Nextafter(tie, 1e300))
		// Any digits, any place of the point.
		f, _ := strconv.ParseFloat(fmt.Sprintf("%de%d", rng.Uint64()>>rng.IntN(64), rng.IntN(40)-30), 64)
		numbers = append(numbers, sign*f)
		// Any bits.
		if f := math.Float64frombits(rng.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			numbers = append(numbers, f)
		}
	}
	numbers = append(numbers, 0, math.Copysign(0, -1), 1e12, math.Nextafter(1e12, 0), -1e12, math.Nextafter(-1e12, 0),
		5e-324, math.MaxFloat64, 1e9, math.Nextafter(1e9, 0), math.Nextafter(1e9, 1e10), 999999999.9999995, 4503599627.3704965)
	properties := make([]string, len(numbers))
	for i, f := range numbers {
		format := "fgeE"[rng.IntN(4)]
		if format == 'f' && math.Abs(f) < 1e-30 {
			format = 'g'
		}
		properties[i] = `{"v":` + strconv.FormatFloat(f, format, -1, 64) + `}`
	}
	oneEach(t, s, properties)
	bad := 0
	for i, got := range each(t, s, new(dialect).Micros("j", "TRY_CAST(j AS DOUBLE)")) {
		want, ok := segment.MicrosOf(numbers[i])
		if !ok {
			want = none
		}
		if got != want {
			t.Errorf("%s: %d, want %d", properties[i], got, want)
			if bad++; bad == 10 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d numbers", len(numbers))
}

// TestS1Times compares times with segment.ParseTime, on times and on what is
// nearly one.
func TestS1Times(t *testing.T) {
	s := openTest(t)
	rng := rand.New(rand.NewPCG(13, 14))
	two := func(limit int) string { return fmt.Sprintf("%02d", rng.IntN(limit+2)) }
	var texts, properties []string
	times := 0
	for range scale(6_000) {
		text := fmt.Sprintf("%04d-%s-%s", []int{rng.IntN(10_000), 1900 + rng.IntN(200), rng.IntN(3), 9999}[rng.IntN(4)], two(11), two(30))
		if rng.IntN(8) > 0 {
			text += "T" + two(22) + ":" + two(58) + ":" + two(58)
			if rng.IntN(2) == 0 {
				text += "." + fmt.Sprintf("%010d", rng.Uint64())[:rng.IntN(11)]
			}
			text += []string{"Z", "Z", "+", "-"}[rng.IntN(4)]
			if !strings.HasSuffix(text, "Z") {
				text += two(22) + ":" + two(58)
			}
		}
		if rng.IntN(10) == 0 {
			i := rng.IntN(len(text))
			text = text[:i] + []string{"", "0", " ", "é", "\n", ":", "t"}[rng.IntN(7)] + text[i+rng.IntN(2):]
		}
		if _, ok := segment.ParseTime(text); ok {
			times++
		}
		texts = append(texts, text)
		properties = append(properties, `{"v":`+string(jsontext.AppendString(nil, text))+`}`)
	}
	oneEach(t, s, properties)
	for i, got := range each(t, s, new(dialect).TimeMs(new(dialect).Text("j"))) {
		want, ok := segment.ParseTime(texts[i])
		if !ok {
			want = none
		}
		if got != want {
			t.Fatalf("%q: %d, want %d", texts[i], got, want)
		}
	}
	if times < len(texts)/10 || times > len(texts)*9/10 {
		t.Fatalf("%d of %d are times", times, len(texts))
	}
}

// hostileKeys are keys that mean something in JSON paths, JSON pointers, SQL or
// JSON.
var hostileKeys = []string{
	"a", "0", "1", "00", "-1", "+1", "-", "#", "#-1", "*", "**", "$", "$.a", "@", ".", " ", "a b", "'", "''", `"`, `a"b`, `\`, `\"`,
	"/", "~", "~0", "~1", "~01", "a/b", "[0]", "[*]", "a[0]", "?", "$1", ":v", "--", "; DROP TABLE events", "é", "e\u0301", "日本", "😀",
	"\n", "\t", "\x01", "\u2028", "null", "true", strings.Repeat("k", 200), "9223372036854775808", "18446744073709551616",
}

// TestS1HostilePaths asks for paths of hostile keys in objects and arrays of
// such keys, and compares with segment.Predicate.
func TestS1HostilePaths(t *testing.T) {
	s := openTest(t)
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
				list = append(list, string(jsontext.AppendString(nil, k))+":"+v)
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
			parts = append(parts, string(jsontext.AppendString(nil, hostileKeys[i]))+":"+value(2))
		}
		properties = append(properties, "{"+strings.Join(parts, ",")+"}")
	}
	upTo := oneEach(t, s, properties)
	found := uint64(0)
	for i := range scale(len(hostileKeys) * 3 / 2) {
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
			leaf := countLeaf("e", 1)
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
