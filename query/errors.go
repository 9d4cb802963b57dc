package query

import (
	"errors"
	"fmt"
)

// ErrUnavailable reports that history cannot be asked at present, and may be asked
// again: nothing is wrong with the question (HTTP: 503 with Retry-After).
var ErrUnavailable = errors.New("history is unavailable")

// RebuildingError reports that history was lost or damaged and is being rebuilt from
// the log. It is an [ErrUnavailable]. Events are stored meanwhile, and whatever is
// answered from the state is exact.
type RebuildingError struct {
	// Done of Total records of the log have been read.
	Done, Total int64
}

func (e *RebuildingError) Error() string {
	return fmt.Sprintf("history is being rebuilt from the log: %d of %d records are done; until then timelines, exports, analytics and conditions that no live segment has cannot be answered", e.Done, e.Total)
}

func (e *RebuildingError) Unwrap() error { return ErrUnavailable }
