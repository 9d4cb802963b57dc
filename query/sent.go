package query

import (
	"strings"

	"github.com/musterhq/muster/segment"
)

// sentMark begins what history keeps as the idempotency key of an event that was sent to
// the service although its type is one of those that the service records itself. Nothing
// else in history tells who recorded an event. Rows from before rules 3 of
// [eventlog.EventRules] have none: events of such types count as the service's own there.
const sentMark = "\x01"

// AppendSentKey appends the idempotency key of an event that was sent, as history keeps
// it.
func AppendSentKey(dst, eventType, key []byte) []byte {
	if segment.OwnEvent(eventType) {
		dst = append(dst, sentMark...)
	}
	return append(dst, key...)
}

// SentKey is the idempotency key of an event that history keeps as stored, and whether
// the event was sent although the service records events of its type itself.
func SentKey(eventType, stored string) (key string, sent bool) {
	if !segment.OwnEvent(eventType) {
		return stored, false
	}
	return strings.CutPrefix(stored, sentMark)
}

// notSent is the condition that an event has no mark, in SQL. column is its idempotency
// key, and bind makes a text part of the statement.
func notSent(column string, bind func(string) string) string {
	return "substr(" + column + ", 1, 1) <> " + bind(sentMark)
}

// TimelineTypes is the condition of a timeline on types and keys of events in SQL, each
// part behind " AND ", empty for none. list binds texts, with commas between.
func (q *TimelineQuery) TimelineTypes(list func(...string) string) string {
	own := func() string { return notSent("idempotency_key", func(s string) string { return list(s) }) }
	where := ""
	switch {
	case q.Types == nil:
	case len(q.Types) == 0:
		where += " AND false"
	default:
		where += " AND event_type IN (" + list(q.Types...) + ")"
		if q.Recorded {
			where += " AND " + own()
		}
	}
	switch {
	case len(q.Except) == 0:
	case q.Recorded:
		where += " AND NOT (event_type IN (" + list(q.Except...) + ") AND " + own() + ")"
	default:
		where += " AND event_type NOT IN (" + list(q.Except...) + ")"
	}
	return where
}
