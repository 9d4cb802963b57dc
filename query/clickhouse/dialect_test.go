package clickhouse

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// each evaluates an expression of j, the JSON behind "v", for each event.
func each(t *testing.T, s *Store, expr string) (values []int64) {
	t.Helper()
	var args []any
	j := dialect{}.Extract("properties", []string{"v"}, func(v any) string { args = append(args, v); return dialect{}.Placeholder(len(args)) })
	sql := fmt.Sprintf(`SELECT toInt64(coalesce(%s, %d)) FROM (SELECT record_offset, %s AS j FROM events) ORDER BY record_offset`, expr, int64(historytest.None), j)
	err := s.ask(context.Background(), bound(sql, args), func(r driver.Rows) error {
		var v int64
		err := r.Scan(&v)
		values = append(values, v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestS1Micros compares the millionths of numbers with segment.MicrosOf.
func TestS1Micros(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	historytest.MicrosOfNumbers(t, s, func() []int64 { return each(t, s, dialect{}.Micros("j", dialect{}.Number("j"))) })
}

// TestS1Numbers: every way to write a number is read as the same float64 as
// elsewhere, also beyond 2⁵³ and beyond 64 bits, and what stands beside it.
func TestS1Numbers(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	rng := rand.New(rand.NewPCG(17, 18))
	texts := []string{"0", "-0", "-0.0", "9007199254740993", "-9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e400", "1e-400", "0.1e-310", "1.7976931348623157e308", "5e-324",
		"123456789012345678901234567890", "0." + strings.Repeat("0", 30) + "1", strings.Repeat("9", 308), "1" + strings.Repeat("0", 25) + ".5e3"}
	for range historytest.Scale(500) {
		text := strconv.FormatUint(rng.Uint64(), 10) + strings.Repeat(strconv.Itoa(rng.IntN(10)), rng.IntN(25))
		switch rng.IntN(4) {
		case 0:
			text = "-" + text
		case 1:
			text += "." + strconv.FormatUint(rng.Uint64(), 10)
		case 2:
			text += fmt.Sprintf("E%+d", rng.IntN(300)-200)
		}
		texts = append(texts, text)
	}
	var properties []string
	var want []float64
	for _, text := range texts {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue // refused at ingestion
		}
		properties = append(properties, `{"n":[`+text+`,{"x":`+text+`}],"s":"`+text+`","v":`+text+`,"z":1}`)
		want = append(want, f)
	}
	historytest.OneEach(t, s, properties)
	for i, got := range each(t, s, "reinterpretAsInt64("+dialect{}.Number("j")+" + 0.0)") {
		if f := math.Float64frombits(uint64(got)); f != want[i] {
			t.Fatalf("%s: %v, want %v", properties[i], f, want[i])
		}
	}
	// They come back as they were.
	ordinals := make([]uint32, len(properties))
	for i := range ordinals {
		ordinals[i] = uint32(i)
	}
	got, err := s.Timeline(context.Background(), query.TimelineQuery{Cut: query.Cut{UpTo: int64(len(properties))}, Account: 1, Ordinals: ordinals, Limit: 10_000})
	if err != nil || len(got) != min(len(properties), maxTimeline) {
		t.Fatalf("%d events, want %d (%v)", len(got), len(properties), err)
	}
	for _, e := range got {
		if e.Properties != properties[e.Key.Offset] {
			t.Fatalf("%s, want %s", e.Properties, properties[e.Key.Offset])
		}
	}
}

// TestReadableJSON: only integers beyond 64 bits are changed.
func TestReadableJSON(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("7", 30)
	for _, c := range [][2]string{
		{`{"a":1}`, ""},
		{`{"a":"` + big + `"}`, ""},
		{`{"` + big + `":"\"` + big + `"}`, ""},
		{`{"a":` + big + `}`, `{"a":` + big + `.0}`},
		{`{"a":[-` + big + `,` + big + `.5,` + big + `e3,1],"b\\":` + big + `}`, `{"a":[-` + big + `.0,` + big + `.5,` + big + `e3,1],"b\\":` + big + `.0}`},
		{`{"a":18446744073709551615,"b":-9223372036854775808}`, ""},
		{`{"a":18446744073709551616,"b":-9223372036854775809}`, `{"a":18446744073709551616.0,"b":-9223372036854775809.0}`},
	} {
		if got := readableJSON(c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
		if c[1] != "" && !hasLongDigits(c[0]) {
			t.Errorf("%s: its number is not found", c[0])
		}
	}
	for i := range 60 {
		text := strings.Repeat("x", i) + strings.Repeat("1", longDigits) + "y"
		if !hasLongDigits(text) || hasLongDigits(strings.Replace(text, "1", "x", 1)) {
			t.Errorf("at %d", i)
		}
	}
}

// TestS1Times compares times with segment.ParseTime.
func TestS1Times(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	historytest.InstantsOfTexts(t, s, func() []int64 { return each(t, s, dialect{}.TimeMs(dialect{}.Text("j"))) })
}

// TestS1MonthStart compares months with [query.Granularity.Start], far from 1970
// too.
func TestS1MonthStart(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	rng := rand.New(rand.NewPCG(19, 20))
	var times []int64
	for range 5_000 {
		ms := rng.Int64N(300*365*86_400_000) - 150*365*86_400_000
		if rng.IntN(2) == 0 {
			ms = query.Month.Start(ms) - int64(rng.IntN(2))
		}
		times = append(times, ms)
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(times), " ", ","), "[]")
	i := 0
	err := s.ask(context.Background(), "SELECT toInt64("+dialect{}.MonthStart("t")+") FROM (SELECT arrayJoin([toInt64(0),"+list+"]) AS t)", func(r driver.Rows) error {
		var got int64
		if err := r.Scan(&got); err != nil {
			return err
		}
		if i > 0 && got != query.Month.Start(times[i-1]) {
			return fmt.Errorf("%d: %d, want %d", times[i-1], got, query.Month.Start(times[i-1]))
		}
		i++
		return nil
	})
	if err != nil || i != len(times)+1 {
		t.Fatal(i, err)
	}
}

// TestQuote: every text is the same behind a literal.
func TestQuote(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	rng := rand.New(rand.NewPCG(21, 22))
	alphabet := []rune("ab'\\\"`\x00\x01\n\r\t\x7f{#1}%_é😀$?;-/*")
	for range 200 {
		text := ""
		for range rng.IntN(12) {
			text += string(alphabet[rng.IntN(len(alphabet))])
		}
		var got string
		err := s.ask(context.Background(), bound("SELECT {#1}", []any{text}), func(r driver.Rows) error { return r.Scan(&got) })
		if err != nil || got != text {
			t.Fatalf("%q: %q (%v)", text, got, err)
		}
	}
}
