package campaigns

import "github.com/musterhq/muster/resolver/internal/refuse"

const (
	// maxRate bounds the messages of a rate.
	maxRate = 1_000_000
	// rateBursts is in how many parts a rate's time is cut: what was not sent in one of them
	// is made up for in the next alone.
	rateBursts = 60
)

// The units of a [Rate].
const (
	PerMinute = "minute"
	PerHour   = "hour"
)

// Rate bounds how many people a campaign is sent to in any minute or hour.
type Rate struct {
	Messages int    `json:"messages"`
	Per      string `json:"per"` // [PerMinute] or [PerHour]
}

// intervalUs is the time between two messages, in µs. It is a little longer than the rate's
// time shared out, so that no window has more, wherever it begins: what a part was short of is
// made up for in the next.
func (x *Rate) intervalUs() int64 {
	n := int64(x.Messages)
	return (x.us() + x.us()/rateBursts + n - 1) / n
}

// PerSecond is how many messages a second a rate lets go out, rounded up, but no more than a
// batch has; 0 for no rate.
func (x *Rate) PerSecond() int {
	if x == nil {
		return 0
	}
	return min(maxBatch, int((int64(x.Messages)*1_000_000+x.us()-1)/x.us()))
}

// us is the time of the rate, in µs.
func (x *Rate) us() int64 {
	if x.Per == PerHour {
		return 3_600_000_000
	}
	return 60_000_000
}

// check says what is wrong with a rate; nil for nothing.
func (x *Rate) check() *refuse.Refusal {
	switch {
	case x == nil:
		return nil
	case x.Messages < 1 || x.Messages > maxRate:
		return refuse.Invalid("rate.messages", "rate.messages Input should be a whole number from 1 to %d", maxRate)
	case x.Per != PerMinute && x.Per != PerHour:
		return refuse.Invalid("rate.per", "rate.per Input should be minute or hour")
	}
	return nil
}
