package duckdb

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
	"github.com/musterhq/muster/segment"
)

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

// TestS1Micros compares the millionths of numbers with segment.MicrosOf.
func TestS1Micros(t *testing.T) {
	s := openTest(t)
	properties, numbers := historytest.Numbers()
	historytest.OneEach(t, s, properties)
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

// TestS1Times compares times with segment.ParseTime.
func TestS1Times(t *testing.T) {
	s := openTest(t)
	properties, texts := historytest.Times()
	historytest.OneEach(t, s, properties)
	times := 0
	for i, got := range each(t, s, new(dialect).TimeMs(new(dialect).Text("j"))) {
		want, ok := segment.ParseTime(texts[i])
		if !ok {
			want = none
		} else {
			times++
		}
		if got != want {
			t.Fatalf("%q: %d, want %d", texts[i], got, want)
		}
	}
	if times < len(texts)/10 || times > len(texts)*9/10 {
		t.Fatalf("%d of %d are times", times, len(texts))
	}
}

func TestS1HostilePaths(t *testing.T) { historytest.HostilePaths(t, openHistory) }

func TestS1TextOperators(t *testing.T) { historytest.TextOperators(t, openHistory) }
