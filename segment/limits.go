package segment

// Limits bound what [Parse] accepts. A zero field stands for its default.
type Limits struct {
	// Bytes is the size of a definition's JSON. Default 262,144 (256 KiB).
	Bytes int
	// Depth is how deep groups may nest; a definition that is a single
	// condition has depth 1. Default 16.
	Depth int
	// Conditions is the number of conditions, groups included. Default 500.
	Conditions int
	// ListValues is the length of the value of in and not_in. Default 1,000.
	ListValues int
	// Where is the number of where filters of one activity. Default 20.
	Where int
	// PathDepth is the number of keys in a field or property. Default 16.
	PathDepth int
	// PathBytes is the length of a field or property. Default 512.
	PathBytes int
	// StringBytes is the length of a string to compare with. Default 1,024.
	StringBytes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Bytes, 256 << 10}, {&l.Depth, 16}, {&l.Conditions, 500}, {&l.ListValues, 1000},
		{&l.Where, 20}, {&l.PathDepth, 16}, {&l.PathBytes, 512}, {&l.StringBytes, 1024},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return l
}

const (
	maxEventTypeBytes = 128
	maxIDBytes        = 128
	msPerDay          = 86_400_000
	maxLastDays       = 36_500
	// maxThreshold bounds what counts and aggregates are compared with.
	maxThreshold = 1_000_000_000_000_000_000
)

// Stored are the limits for definitions that were accepted before and are read
// back in canonical form, which may be longer than what was sent: a number of
// four characters can be written with sixteen.
func Stored() Limits {
	return Limits{
		Bytes: 64 << 20, Depth: 1 << 10, Conditions: 1 << 20, ListValues: 1 << 20,
		Where: 1 << 10, PathDepth: 1 << 10, PathBytes: 1 << 20, StringBytes: 1 << 20,
	}
}
