package query

import "errors"

// ErrUnavailable says that history cannot be asked at present, and may be asked
// again: nothing is wrong with the question (HTTP: 503 with Retry-After).
var ErrUnavailable = errors.New("history is unavailable")
