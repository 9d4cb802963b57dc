package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

func TestTimelinePages(t *testing.T) { historytest.TimelinePages(t, grouped(700)) }

func TestTimelineOfTypes(t *testing.T) { historytest.TimelineOfTypes(t, grouped(300)) }
