package clickhouse

import (
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestCounts: rows outside the cover do not count.
func TestCounts(t *testing.T) {
	s := openTest(t)
	for p := range 2 {
		for from := int64(0); from < 300; from += 100 {
			var b query.Batch
			historytest.FillRecords(&b, p, from, from+100)
			if err := s.Append(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	// An insert that was cut off before its commit.
	var late query.Batch
	historytest.FillRecords(&late, 1, 250, 300)
	if err := s.insert(t.Context(), &addition{batch: &late, writer: 12345, from: 250}); err != nil {
		t.Fatal(err)
	}
	for _, upTo := range []int64{300, 171} {
		var want query.Batch
		historytest.FillRecords(&want, 1, 0, upTo)
		expect := query.Counts{Events: int64(want.Rows()), Aliases: int64(len(want.Aliases)), Transitions: int64(len(want.Transitions)),
			TextBytes: int64(len(want.EventType.Data) + len(want.Properties.Data) + len(want.IdempotencyKey.Data))}
		cut := query.Cut{Partition: 1, UpTo: upTo}
		if got, err := s.Counts(t.Context(), cut, 0, 1); got != expect || err != nil {
			t.Errorf("below %d: %+v, %v; want %+v", upTo, got, err, expect)
		}
		// All rows are of account 8.
		if got, err := s.Counts(t.Context(), cut, 2, 3); got != expect || err != nil {
			t.Errorf("below %d: %+v, %v; want %+v", upTo, got, err, expect)
		}
		if got, err := s.Counts(t.Context(), cut, 1, 3); got != (query.Counts{}) || err != nil {
			t.Errorf("below %d: %+v, %v; want none", upTo, got, err)
		}
	}
}
