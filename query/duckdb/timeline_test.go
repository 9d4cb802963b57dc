package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

func TestTimelinePages(t *testing.T) {
	t.Parallel()
	historytest.TimelinePages(t, grouped(700))
}

func TestTimelineOfTypes(t *testing.T) {
	t.Parallel()
	historytest.TimelineOfTypes(t, grouped(300))
}
