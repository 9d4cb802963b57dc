package flows

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/wire"
)

// Status says how far an enrolment is.
type Status uint8

// The statuses. Numbers are on disk.
const (
	InProgress Status = 1
	Completed  Status = 2 // it reached the end
	Exited     Status = 3 // it ended before: see Reason
)

// String is the status's name on the console.
func (s Status) String() string {
	switch s {
	case InProgress:
		return "in_progress"
	case Completed:
		return "completed"
	case Exited:
		return "exited"
	}
	return "unknown"
}

// Reason says why an enrolment exited.
type Reason uint8

// The reasons. Numbers are on disk.
const (
	ByStep    Reason = 1 // an exit step
	ByFailure Reason = 2 // a webhook failed, and its step says so
	ByMerge   Reason = 3 // the profile became part of another, which is further
)

// String is the reason's name on the console, empty for none.
func (r Reason) String() string {
	switch r {
	case ByStep:
		return "exit_step"
	case ByFailure:
		return "webhook_failed"
	case ByMerge:
		return "merged"
	}
	return ""
}

// Phase says what an enrolment does at its step.
type Phase uint8

// The phases. Numbers are on disk.
const (
	Ready    Phase = 0 // the step is to be carried out
	Sleeping Phase = 1 // until DueMs
	Awaiting Phase = 2 // what became of Item
	// The outcome of Item came while the flow was paused, at DueMs. The enrolment continues
	// with it at the resume.
	HeardDelivered Phase = 3
	HeardFailed    Phase = 4
)

// Result is the outcome of a step.
type Result uint8

// The results. Numbers are on disk.
const (
	Pending       Result = 0 // the enrolment is at the step
	Done          Result = 1
	Queued        Result = 2 // a message was handed over to be sent
	Yes           Result = 3 // the condition holds
	No            Result = 4
	Branched      Result = 5 // Visit.Branch says where to
	Delivered     Result = 6 // a webhook was taken
	Failed        Result = 7
	NoAddress     Result = 8  // the profile has none for the channel
	NotSubscribed Result = 9  // to the channel
	Suppressed    Result = 10 // the channel is suppressed for the profile
	Refused       Result = 11 // a limit was reached: nothing was done
	Stopped       Result = 12 // the enrolment ended here for a reason from outside
	QuietHours    Result = 13 // the account sends nothing in these hours of the profile's day
	FrequencyCap  Result = 14 // the profile has had as many messages as the account lets it have
	// OutOfCredits is no result of a step: it is not carried out until there are
	// credits. It is not stored.
	OutOfCredits Result = 255
	// Held is no result either: the step is carried out later, see [Host.HeldUntil]. It is
	// not stored.
	Held Result = 253
	// Later is no result either: there is no room for the effect now, and the step
	// is carried out after [RetryMs]. It is not stored.
	Later Result = 254
)

var resultNames = [...]string{"pending", "done", "queued", "yes", "no", "branch", "delivered", "failed", "skipped_no_address", "skipped_not_subscribed", "skipped_blocked", "refused", "exited", "skipped_quiet_hours", "skipped_frequency_cap"}

// String is the result's name on the console.
func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return "unknown"
}

// Visit is one step that an enrolment came to.
type Visit struct {
	Step   int
	AtMs   int64
	Result Result
	Branch int // of a split, or the place of the message that was queued
	// Reason says why the step failed, MaxReasonBytes at most. It is only with Failed,
	// or with Pending while that waits for a paused flow.
	Reason string
}

// MaxReasonBytes bounds why a step failed.
const MaxReasonBytes = 200

// boundReason cuts a reason between characters.
func boundReason(text string) string {
	if len(text) > MaxReasonBytes {
		text = text[:MaxReasonBytes]
	}
	return strings.ToValidUTF8(text, "")
}

// RetryMs is when a step is tried again whose effect found no room.
const RetryMs = 30_000

// Never is the due time of what no time ends.
const Never = math.MaxInt64

// Enrolment is one passage of a profile through a flow.
type Enrolment struct {
	Number    uint32 // among those of the profile in the flow, from 1
	Status    Status
	Phase     Phase
	Reason    Reason
	Depth     uint8 // how many enrolments started each other, at one instant, before it
	Step      int   // where it stands, End when it has ended
	StartedMs int64
	SinceMs   int64  // it has stood there
	DueMs     int64  // it continues, or could but for a pause, or Never
	EndedMs   int64  // 0 while it is in progress
	Item      uint64 // of the outbox, while Awaiting or Heard
	Path      []Visit
	Event     []byte // what started it: a JSON object, empty for none
}

// Heard reports whether it waits only for its paused flow to continue with what became
// of Item.
func (e *Enrolment) Heard() bool { return e.Phase == HeardDelivered || e.Phase == HeardFailed }

// Timed reports whether it continues by itself at DueMs.
func (e *Enrolment) Timed() bool { return e.Status == InProgress && e.Phase != Awaiting }

// ErrFormat means that stored enrolments are not of a known layout.
var ErrFormat = errors.New("stored enrolments have a bad format")

const (
	// A record without reasons is written in version 1, which every build reads.
	recordVersion        = 1
	recordVersionReasons = 2
	// KeptEnded is how many ended enrolments of a profile in a flow are kept, the
	// newest.
	KeptEnded = 10
	maxVisits = 1 << 12
)

// Record is all that is stored of a profile in a flow.
type Record struct {
	// DateMs is when a date trigger is due for the profile, 0 for never.
	DateMs int64
	// Enrolments are the profile's in the flow, the newest last. Only that one
	// can be in progress.
	Enrolments []Enrolment
}

// Current is the enrolment in progress, nil if there is none.
func (r *Record) Current() *Enrolment {
	if n := len(r.Enrolments); n > 0 && r.Enrolments[n-1].Status == InProgress {
		return &r.Enrolments[n-1]
	}
	return nil
}

// Begin adds an enrolment. Of those that have ended it keeps the newest.
func (r *Record) Begin(e Enrolment) *Enrolment {
	e.Number = 1
	if n := len(r.Enrolments); n > 0 {
		e.Number = r.Enrolments[n-1].Number + 1
		if n > KeptEnded {
			r.Enrolments = append(r.Enrolments[:0], r.Enrolments[n-KeptEnded:]...)
		}
	}
	r.Enrolments = append(r.Enrolments, e)
	return &r.Enrolments[len(r.Enrolments)-1]
}

// Append writes the record behind dst.
func (r *Record) Append(dst []byte) []byte {
	le := binary.LittleEndian
	reasons := slices.ContainsFunc(r.Enrolments, func(e Enrolment) bool { return e.reasons() > 0 })
	if reasons {
		dst = append(dst, recordVersionReasons)
	} else {
		dst = append(dst, recordVersion)
	}
	dst = le.AppendUint64(dst, uint64(r.DateMs))
	dst = binary.AppendUvarint(dst, uint64(len(r.Enrolments)))
	for i := range r.Enrolments {
		e := &r.Enrolments[i]
		dst = append(dst, byte(e.Status), byte(e.Phase), byte(e.Reason), e.Depth)
		dst = le.AppendUint32(dst, e.Number)
		dst = binary.AppendUvarint(dst, uint64(e.Step+1))
		for _, ms := range [...]int64{e.StartedMs, e.SinceMs, e.DueMs, e.EndedMs, int64(e.Item)} {
			dst = le.AppendUint64(dst, uint64(ms))
		}
		dst = binary.AppendUvarint(dst, uint64(len(e.Path)))
		for _, v := range e.Path {
			dst = binary.AppendUvarint(dst, uint64(v.Step))
			dst = le.AppendUint64(dst, uint64(v.AtMs))
			dst = append(dst, byte(v.Result), byte(v.Branch))
		}
		dst = wire.AppendBlock(dst, e.Event)
		if reasons {
			dst = e.appendReasons(dst)
		}
	}
	return dst
}

// reasons counts the steps that have a reason.
func (e *Enrolment) reasons() (n int) {
	for i := range e.Path {
		if e.Path[i].Reason != "" {
			n++
		}
	}
	return n
}

func (e *Enrolment) appendReasons(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.reasons()))
	for i := range e.Path {
		if why := e.Path[i].Reason; why != "" {
			dst = wire.AppendBlock(binary.AppendUvarint(dst, uint64(i)), []byte(why))
		}
	}
	return dst
}

// readReasons reads what appendReasons wrote.
func (e *Enrolment) readReasons(in *wire.Reader) error {
	next := uint64(0) // the least place that may come
	for range in.Count(2) {
		at, why := in.Uvarint(), in.Block()
		if in.Bad || at < next || at >= uint64(len(e.Path)) || len(why) == 0 || len(why) > MaxReasonBytes {
			return ErrFormat
		}
		e.Path[at].Reason = string(why)
		next = at + 1
	}
	return nil
}

// Decode reads what Append wrote; it never panics. Slices point into b or are
// the record's own, which it uses again.
func (r *Record) Decode(b []byte) error {
	in := wire.Reader{B: b}
	version := in.U8()
	if version != recordVersion && version != recordVersionReasons {
		return ErrFormat
	}
	r.DateMs = int64(in.U64())
	n := in.Count(50)
	for len(r.Enrolments) < n {
		r.Enrolments = append(r.Enrolments, Enrolment{})
	}
	r.Enrolments = r.Enrolments[:n]
	for i := range r.Enrolments {
		e := &r.Enrolments[i]
		e.Status, e.Phase, e.Reason, e.Depth = Status(in.U8()), Phase(in.U8()), Reason(in.U8()), in.U8()
		e.Number = in.U32()
		e.Step = int(min(in.Uvarint(), math.MaxInt32)) - 1
		e.StartedMs, e.SinceMs, e.DueMs, e.EndedMs, e.Item = int64(in.U64()), int64(in.U64()), int64(in.U64()), int64(in.U64()), in.U64()
		e.Path = e.Path[:0]
		visits := in.Count(11)
		if visits > maxVisits || e.Status < InProgress || e.Status > Exited || e.Phase > HeardFailed || e.Status == InProgress && i < n-1 {
			return ErrFormat
		}
		for range visits {
			e.Path = append(e.Path, Visit{Step: int(min(in.Uvarint(), math.MaxInt32)), AtMs: int64(in.U64()), Result: Result(in.U8()), Branch: int(in.U8())})
		}
		e.Event = in.Block()
		if version == recordVersionReasons {
			if err := e.readReasons(&in); err != nil {
				return err
			}
		}
	}
	if in.Bad || len(in.B) != 0 {
		return ErrFormat
	}
	return nil
}
