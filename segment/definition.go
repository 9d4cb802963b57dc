package segment

// Node is one node of a definition's tree: a group, or a leaf whose pointer of
// the same name is set.
type Node struct {
	Kind       Kind
	Match      Match   // groups
	Conditions []*Node // groups, at least one
	// IncludeAnonymous is set on the root of a definition alone, which is a group then:
	// profiles of which nothing says who they are may be members.
	IncludeAnonymous bool
	Activity         *Activity
	Attribute        *Attribute
	Consent          *Consent
	List             *List
	Segment          *Ref
}

// Kind is the kind of a node.
type Kind string

// The kinds of nodes.
const (
	KindGroup     Kind = "group"
	KindActivity  Kind = "activity"
	KindAttribute Kind = "attribute"
	KindConsent   Kind = "consent"
	KindList      Kind = "list"
	KindSegment   Kind = "segment"
)

// Match says how a group combines its conditions.
type Match string

// The ways to combine.
const (
	MatchAll Match = "all"
	MatchAny Match = "any"
)

// Op is an operator of a condition.
type Op string

// The operators.
const (
	OpEq            Op = "="
	OpNe            Op = "!="
	OpGt            Op = ">"
	OpGe            Op = ">="
	OpLt            Op = "<"
	OpLe            Op = "<="
	OpIn            Op = "in"
	OpNotIn         Op = "not_in"
	OpContains      Op = "contains"
	OpNotContains   Op = "not_contains"
	OpStartsWith    Op = "starts_with"
	OpEndsWith      Op = "ends_with"
	OpExists        Op = "exists"
	OpNotExists     Op = "not_exists"
	OpBetween       Op = "between"
	OpBefore        Op = "before"
	OpAfter         Op = "after"
	OpInLastDays    Op = "in_last_days"
	OpNotInLastDays Op = "not_in_last_days"
)

// Value is a scalar of a definition.
type Value struct {
	Kind ValueKind
	Str  string
	Num  float64
	Bool bool
}

// ValueKind is the JSON type of a [Value].
type ValueKind uint8

// The kinds of values.
const (
	ValueString ValueKind = iota + 1
	ValueNumber
	ValueBool
)

// Predicate compares the value at a path with constants.
type Predicate struct {
	// Path is the way into nested objects, outermost first.
	Path []string
	Op   Op
	// Values holds the constants: none for exists, two for between (low, high,
	// both included), any number for in, one otherwise. For before and after
	// the value is a time in RFC 3339 as a string; TimeMs holds it parsed.
	Values []Value
	// TimeMs is the constant of before and after, in Unix milliseconds.
	TimeMs int64
	// WindowMs is the width of in_last_days, in milliseconds.
	WindowMs int64
}

// Activity is a condition on what a profile has done.
type Activity struct {
	// Event is the type of the events, or AnyEvent: the condition is then written
	// as one on the attribute event_count, of which only Count is set.
	Event string
	// Did false is the complement of the same condition with true.
	Did bool
	// WindowMs is the width of the sliding window; 0 is all time. An event
	// counts at time t when its time is > t − WindowMs and ≤ t.
	WindowMs int64
	// Where must all hold on the event's properties.
	Where []Predicate
	// Count is set unless Aggregate is.
	Count *Compare
	// Aggregate, when set, replaces Count.
	Aggregate *Aggregate
}

// Compare compares a number with constants: one, two for between (both
// included), any for in and not_in.
type Compare struct {
	Op Op
	// Micros are the constants in millionths, exact.
	Micros []Int128
}

// Fn is an aggregate function.
type Fn string

// The aggregate functions.
const (
	FnSum      Fn = "sum"
	FnAvg      Fn = "avg"
	FnMin      Fn = "min"
	FnMax      Fn = "max"
	FnDistinct Fn = "distinct"
)

// Aggregate compares a function of a property over the matching events.
type Aggregate struct {
	Fn       Fn
	Property []string
	Compare  Compare
}

// Attribute is a condition on a field of the profile.
type Attribute struct {
	// Field is the field as written, such as "geo.country".
	Field string
	// Predicate's Path is Field split at the dots.
	Predicate Predicate
}

// Consent is a condition on a channel's consent.
type Consent struct {
	Channel string
	Status  string
	// SinceMs and UntilMs bound the subscribe date: since ≤ date < until.
	SinceMs, UntilMs *int64
}

// List is a condition on static membership.
type List struct {
	ListID string
	Member bool
}

// Ref is a condition on membership of another segment.
type Ref struct {
	SegmentID string
	Member    bool
}
