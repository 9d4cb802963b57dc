package segment

// Cause says why a profile entered or left a segment. Numbers are on disk.
type Cause uint8

// The causes.
const (
	CauseEvent      Cause = 1 // the profile did something
	CauseExpiry     Cause = 2 // time passed: a window ran out or began
	CauseProfile    Cause = 3 // an attribute, identifier, consent or list changed
	CauseMerge      Cause = 4 // two profiles became one
	CauseDefinition Cause = 5 // the segment was created or its definition changed
)

// String is the cause's name on the console.
func (c Cause) String() string {
	switch c {
	case CauseEvent:
		return "event"
	case CauseExpiry:
		return "expiry"
	case CauseProfile:
		return "profile"
	case CauseMerge:
		return "merge"
	case CauseDefinition:
		return "definition"
	}
	return "unknown"
}
