package query

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// History stores resolved events. Implementations: query/duckdb. Methods may
// be called from several goroutines at once, Append from one per partition.
type History interface {
	// Position is the offset up to which the partition's records are stored
	// durably: the first offset that is missing.
	Position(ctx context.Context, partition int) (int64, error)
	// Append stores the batch durably and atomically and moves the partition's
	// position to b.To. Rows, aliases and transitions below the present position
	// are dropped: they are there already. b.From above the position is an error
	// (rows would be missing).
	Append(ctx context.Context, b *Batch) error
	// Timeline returns a profile's events, newest first.
	Timeline(ctx context.Context, q TimelineQuery) ([]TimelineEntry, error)
	// Activity returns the ordinals (mapped through aliases) of profiles with
	// at least one matching event (type, window and where) whose comparison
	// (count or aggregate) holds or, with Negate, does not hold. Profiles
	// without matching events are never in the answer: where the comparison
	// holds for them too ([segment.Activity.HoldsForNone]), the caller asks
	// with Negate and takes the complement in the universe of profiles.
	Activity(ctx context.Context, q ActivityQuery) (*roaring.Bitmap, error)
	// Replay calls fn with the past events of one type, in blocks and in any
	// order, ordinals mapped through aliases. A block is never empty and is
	// reused: it is valid during the call only. An error of fn ends the replay
	// and is returned. fn may take its time and may ask and append meanwhile.
	// The cut must not be above the position.
	Replay(ctx context.Context, q ReplayQuery, fn func(*ReplayBlock) error) error
	// Transitions returns entries and exits in the order they were made, their
	// ordinals as they then were.
	Transitions(ctx context.Context, q TransitionsQuery) ([]Transition, error)
	// ProfileTransitions returns a profile's entries and exits, newest first: by the
	// instant of the change, then by position. Their ordinals are as they then were.
	ProfileTransitions(ctx context.Context, q ProfileTransitionsQuery) ([]Transition, error)
	// Series counts events by type and span of time, in order of both. More
	// rows than [MaxSeriesRows] are [ErrSeriesTooLarge].
	Series(ctx context.Context, q SeriesQuery) ([]SeriesRow, error)
	// Deeds returns what each of some profiles did, in order of profiles, types
	// and values. More rows than [MaxSeriesRows] are [ErrSeriesTooLarge].
	Deeds(ctx context.Context, q DeedsQuery) ([]Deed, error)
	// Moves counts entries and exits by segment and span of time, in order of both.
	// More rows than [MaxSeriesRows] are [ErrSeriesTooLarge].
	Moves(ctx context.Context, q MovesQuery) ([]MovesRow, error)
	// Erase removes all rows of profiles below the cut, which the position must
	// have reached: events, aliases, entries and exits. What is gone already does
	// not matter, so that it may be repeated.
	Erase(ctx context.Context, q EraseQuery) error
	// Usage reports the store's size.
	Usage(ctx context.Context) (Usage, error)
	// Close writes what is pending and closes the store.
	Close() error
}

// Cut names one state of a partition's records.
type Cut struct {
	Partition int
	// UpTo is the offset the query may not reach: records below it are seen.
	UpTo int64
}

// TimelineQuery asks for the newest events of one profile.
type TimelineQuery struct {
	Cut     Cut
	Account uint64
	// Ordinals are the profile's own ordinal and those merged into it.
	Ordinals []uint32
	// Types, when not nil, are the only types of events to return; Except are types
	// to leave out.
	Types, Except []string
	// Recorded reports that Types and Except are of events that the service recorded itself:
	// those that were sent under such a type are none of them.
	Recorded bool
	// Late are types that count as later than all others of the same millisecond.
	Late []string
	// Before, when set, starts behind that entry (for paging).
	Before *TimelineKey
	Limit  int
}

// Keeps reports whether events of a type are in the answer; sent is that of their
// [TimelineEntry].
func (q *TimelineQuery) Keeps(eventType string, sent bool) bool {
	if q.Recorded && sent {
		return q.Types == nil
	}
	return (q.Types == nil || slices.Contains(q.Types, eventType)) && !slices.Contains(q.Except, eventType)
}

// TimelineKey orders a timeline: by time, late types last, then by position.
type TimelineKey struct {
	TimeMs int64
	Late   bool // the type is one of [TimelineQuery.Late]
	Offset int64
	Index  uint32
}

// TimelineEntry is one event of a profile.
type TimelineEntry struct {
	Key            TimelineKey
	EventType      string
	Properties     string // canonical JSON object, "" when the event had none
	IdempotencyKey string
	// Sent reports that the event was sent to the service, of a type that the service
	// records itself. Events of other types are always sent.
	Sent bool
}

// ActivityQuery asks who satisfies an activity condition.
type ActivityQuery struct {
	Cut     Cut
	Account uint64
	// Leaf is the condition; its Did is ignored.
	Leaf *segment.Activity
	// AtMs is the instant the condition is judged at, in Unix milliseconds.
	AtMs int64
	// Negate asks for the profiles with matching events that fail the
	// comparison.
	Negate bool
}

// ReplayQuery asks for the past events of one type.
type ReplayQuery struct {
	Cut     Cut
	Account uint64
	// EventType may be [segment.AnyEvent].
	EventType string
	// AfterMs, when set, leaves out events at or before it (Unix milliseconds).
	AfterMs *int64
	// Where must all hold on the properties. Filters that depend on the instant
	// (in_last_days, not_in_last_days) are not allowed here.
	Where []segment.Predicate
	// Properties asks for the properties; without it the column stays empty.
	Properties bool
	// Keys asks for the idempotency keys likewise, as history keeps them: see [SentKey].
	Keys bool
	// Number, when set, is the path of a property whose number is wanted.
	Number []string
}

// Matching is the same question without properties and keys.
func (q *ReplayQuery) Matching() MatchQuery {
	m := MatchQuery{Cut: q.Cut, Account: q.Account, EventType: q.EventType, AfterMs: q.AfterMs, Where: q.Where}
	if q.Number != nil {
		m.Value, m.As = q.Number, AsMicros
	}
	return m
}

// ReplayBlock is some events of a replay, column by column.
type ReplayBlock struct {
	Ordinal        []uint32
	TimeMs         []int64
	Properties     Strings // canonical JSON object, "" for none
	IdempotencyKey Strings // "" for none
	Micros         []int64 // numbers as [segment.MicrosOf], [NoMicros] for none; empty without ReplayQuery.Number
}

// TransitionsQuery asks for the entries and exits of an account, or of one of
// its segments.
type TransitionsQuery struct {
	Cut     Cut
	Account uint64
	Segment string // "" for all segments
	// After starts behind that position; the zero value starts at the beginning.
	After TransitionKey
	Limit int
}

// ProfileTransitionsQuery asks for the newest entries and exits of one profile.
type ProfileTransitionsQuery struct {
	Cut     Cut
	Account uint64
	// Ordinals are the profile's own ordinal and those merged into it.
	Ordinals []uint32
	// Before, when set, starts behind that place (for paging).
	Before *TransitionPlace
	Limit  int
}

// TransitionPlace orders a profile's entries and exits.
type TransitionPlace struct {
	AtMs int64
	Key  TransitionKey
}

// Usage is the size of a history.
type Usage struct {
	Rows  int64
	Bytes int64
}
