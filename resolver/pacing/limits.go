package pacing

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/zones"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The bounds of limits. MaxMessages also bounds what is kept of a person.
const (
	MaxCaps     = 20
	MaxMessages = 100      // of a cap
	MaxHours    = 24 * 366 // of a cap's window

	hourMs = 3_600_000
)

// What happens to a message in quiet hours.
const (
	ThenWait = "wait" // it goes out when they end
	ThenSkip = "skip" // the person is passed over
)

// Channels are the channels that limits are about, by their names in consents. What is kept of
// messages has their places in this order.
var Channels = [...]string{"email", "sms", "whatsapp", "im", "push", "in_app"}

// Limits say when and how often a person may be sent messages, over all campaigns and flows.
type Limits struct {
	// Timezone is the account's, a name of the IANA database; "" is UTC. It stands for that of
	// people whose own is not known.
	Timezone string `json:"timezone"`
	// QuietHours are nil for none.
	QuietHours *QuietHours `json:"quiet_hours"`
	Caps       []Cap       `json:"frequency_caps"`
}

// QuietHours are a time of each day in which a person is sent no message, by the person's
// clock.
type QuietHours struct {
	// From and To are times of the day as HH:MM. Where To is not after From it is on the next
	// day.
	From string `json:"from"`
	To   string `json:"to"`
	// Channels are those that they hold for; none are all but in_app.
	Channels []string `json:"channels"`
	// Then is [ThenWait] or [ThenSkip]; "" is [ThenWait].
	Then string `json:"then"`
}

// Cap bounds the messages to a person in any window of so many hours.
type Cap struct {
	// Channel is the one whose messages count, "" for all of them together.
	Channel  string `json:"channel,omitempty"`
	Messages int    `json:"messages"`
	Hours    int    `json:"hours"`
}

// Shown returns the limits as clients see them: what was left out has its default.
func (l Limits) Shown() *Limits {
	if l.Timezone == "" {
		l.Timezone = "UTC"
	}
	l.Caps = append([]Cap{}, l.Caps...)
	if l.QuietHours != nil {
		q := *l.QuietHours
		if q.Then == "" {
			q.Then = ThenWait
		}
		q.Channels = append([]string{}, q.Channels...)
		l.QuietHours = &q
	}
	return &l
}

// Validate says what is wrong with the limits; nil for nothing. field is their name in
// requests.
func (l *Limits) Validate(field string) *refuse.Refusal {
	bad := func(name, format string, args ...any) *refuse.Refusal {
		name = field + "." + name
		return refuse.Invalid(name, "%s", name+" Input should be "+fmt.Sprintf(format, args...))
	}
	if l.Timezone != "" {
		if _, ok := zones.Load(l.Timezone); !ok {
			return bad("timezone", `the name of a time zone of the IANA database, such as "Europe/Berlin"`)
		}
	}
	if q := l.QuietHours; q != nil {
		from, fromOK := minutes(q.From)
		to, toOK := minutes(q.To)
		switch {
		case !fromOK:
			return bad("quiet_hours.from", `a time of the day from "00:00" to "23:59"`)
		case !toOK:
			return bad("quiet_hours.to", `a time of the day from "00:00" to "23:59"`)
		case from == to:
			return bad("quiet_hours.to", "another time than from; leave quiet_hours out, or set them to null, for none")
		case q.Then != "" && q.Then != ThenWait && q.Then != ThenSkip:
			return bad("quiet_hours.then", "wait or skip")
		}
		for i, channel := range q.Channels {
			name := fmt.Sprintf("quiet_hours.channels[%d]", i)
			switch {
			case !slices.Contains(Channels[:], channel):
				return bad(name, "email, sms, whatsapp, im, push or in_app")
			case slices.Index(q.Channels, channel) < i:
				return bad(name, "named once; %s stands there twice", channel)
			}
		}
	}
	if len(l.Caps) > MaxCaps {
		return bad("frequency_caps", "at most %d caps", MaxCaps)
	}
	for i, c := range l.Caps {
		name := fmt.Sprintf("frequency_caps[%d]", i)
		same := func(x Cap) bool { return x.Channel == c.Channel && x.Hours == c.Hours }
		switch {
		case c.Channel != "" && !slices.Contains(Channels[:], c.Channel):
			return bad(name+".channel", "email, sms, whatsapp, im, push or in_app; left out, messages on all channels count together")
		case c.Messages < 1 || c.Messages > MaxMessages:
			return bad(name+".messages", "a whole number from 1 to %d", MaxMessages)
		case c.Hours < 1 || c.Hours > MaxHours:
			return bad(name+".hours", "a whole number from 1 to %d", MaxHours)
		case slices.IndexFunc(l.Caps, same) < i:
			return bad(name+".hours", "another number than that of frequency_caps[%d], which is of the same channel; keep the lower one", slices.IndexFunc(l.Caps, same))
		}
	}
	return nil
}

// minutes reads HH:MM, in seconds after midnight.
func minutes(text string) (second int, ok bool) {
	second, ok = localtime.Clock(text)
	return second, ok && len(text) == len("HH:MM")
}

// rules are limits, ready to be applied.
type rules struct {
	zone  *time.Location
	quiet *quietRule
	caps  []capRule
	// longestMs is the longest window of a cap, counted the channels that some cap counts.
	longestMs int64
	counted   [len(Channels)]bool
}

type quietRule struct {
	from, to int // seconds after midnight
	nextDay  bool
	channels [len(Channels)]bool
	skips    bool
}

type capRule struct {
	channel  int // −1 for all
	messages int
	windowMs int64
}

// newRules readies limits that were checked, nil for none.
func newRules(l *Limits) rules {
	out := rules{zone: time.UTC}
	if l == nil {
		return out
	}
	if z, ok := zones.Load(l.Timezone); ok {
		out.zone = z
	}
	if q := l.QuietHours; q != nil {
		x := &quietRule{skips: q.Then == ThenSkip}
		x.from, _ = minutes(q.From)
		x.to, _ = minutes(q.To)
		x.nextDay = x.to <= x.from
		for i, channel := range Channels {
			// An in-app message makes no sound: its channel must be named.
			x.channels[i] = len(q.Channels) == 0 && channel != "in_app" || slices.Contains(q.Channels, channel)
		}
		out.quiet = x
	}
	for _, c := range l.Caps {
		x := capRule{slices.Index(Channels[:], c.Channel), c.Messages, int64(c.Hours) * hourMs}
		out.caps = append(out.caps, x)
		out.longestMs = max(out.longestMs, x.windowMs)
		for i := range out.counted {
			out.counted[i] = out.counted[i] || x.channel < 0 || x.channel == i
		}
	}
	return out
}

// until is when the quiet hours end in which an instant is, by the clocks of a zone; 0 for an
// instant in none. Those of a day begin at the first instant at which clocks show From or
// later, and end at the first at which they show To or later: once, where clocks are put back.
func (q *quietRule) until(zone *time.Location, nowMs int64) int64 {
	today := localtime.Day(zone, nowMs)
	for day := today - 1; day <= today; day++ {
		end := day
		if q.nextDay {
			end++
		}
		if localtime.Instant(zone, day, q.from) <= nowMs {
			if until := localtime.Instant(zone, end, q.to); nowMs < until {
				return until
			}
		}
	}
	return 0
}
