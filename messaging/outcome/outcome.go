package outcome

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/clip"
)

// Class is what a dispatcher acts on. The numbers are stable: they may be
// stored.
type Class uint8

const (
	// Accepted: the provider took responsibility for the message. It is no
	// proof of delivery.
	Accepted Class = 1
	// Permanent: this message will never reach this recipient.
	Permanent Class = 2
	// Temporary: nothing was delivered; the same attempt may succeed later.
	Temporary Class = 3
	// Refused: the provider does not accept our credentials, our sender or our
	// configuration. It is not the recipient's fault, and others would fail alike.
	Refused Class = 4
	// Ambiguous: the message went out in full and the answer was lost. It may
	// have been accepted.
	Ambiguous Class = 5
	// Retired: the provider says that the device token is dead for good.
	Retired Class = 6
)

var classNames = [...]string{
	Accepted: "accepted", Permanent: "permanent", Temporary: "temporary",
	Refused: "refused", Ambiguous: "ambiguous", Retired: "retired",
}

// String returns the class's lower-case name, "class(N)" for an unknown one.
func (c Class) String() string {
	if int(c) < len(classNames) && classNames[c] != "" {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// MarshalText writes the name; an unknown class is an error.
func (c Class) MarshalText() ([]byte, error) {
	if int(c) < len(classNames) && classNames[c] != "" {
		return []byte(classNames[c]), nil
	}
	return nil, fmt.Errorf("outcome: no such class: %d", uint8(c))
}

// UnmarshalText reads what MarshalText wrote.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames {
		if name != "" && name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("outcome: no such class: %q", text)
}

const (
	// MaxText bounds Result.Text, MaxCode Result.Code and Result.ProviderID, in bytes.
	MaxText = 500
	MaxCode = 128
)

// Result is how one attempt ended.
type Result struct {
	Class Class
	// ProviderID is the provider's own id of the message, if it gave one.
	ProviderID string
	// Code is the provider's code, for example "550 5.1.1", "UNREGISTERED" or
	// "21211"; a word of ours in lower case when the failure is ours, for
	// example "network" or "invalid_recipient".
	Code string
	// Text is the provider's text, one line of at most MaxText bytes.
	Text string
	// RetryAfter is how long the provider asked to wait, 0 if it did not.
	RetryAfter time.Duration
	// Hard marks a permanent failure of the address itself (a hard bounce):
	// nothing will ever reach it. Other permanent failures concern the message.
	Hard bool
	// OptedOut marks a permanent failure because the recipient told the provider to
	// be sent nothing: a STOP that the provider answered.
	OptedOut bool
	// Cause is the error below a failure of ours, nil when the provider answered.
	Cause error `json:"-"`
}

// New returns a Result whose texts are cut to their bounds and freed of control
// characters. Providers' answers are foreign text.
func New(class Class, code, text string) Result {
	return Result{Class: class, Code: Clean(code, MaxCode), Text: Clean(text, MaxText)}
}

// Failed returns a Result for a failure below or before the provider's answer.
func Failed(class Class, code string, cause error) Result {
	r := New(class, code, cause.Error())
	r.Cause = cause
	return r
}

// OK reports whether the provider took the message.
func (r Result) OK() bool { return r.Class == Accepted }

// Err returns nil for an accepted message, else an *Error.
func (r Result) Err() error {
	if r.Class == Accepted {
		return nil
	}
	return &Error{Result: r}
}

// Error is a Result that is not Accepted, as an error.
type Error struct{ Result Result }

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Result.Class.String())
	for _, part := range []string{e.Result.Code, e.Result.Text} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(part)
		}
	}
	return b.String()
}

// Unwrap returns the Result's Cause.
func (e *Error) Unwrap() error { return e.Result.Cause }

// ClassOf returns the class of the first *Error in err's chain, Accepted for
// nil and Temporary for any other error: what is not known to be final is tried again.
func ClassOf(err error) Class {
	var e *Error
	switch {
	case err == nil:
		return Accepted
	case errors.As(err, &e):
		return e.Result.Class
	default:
		return Temporary
	}
}

// Clean returns s as one line of valid UTF-8 without control characters, runs
// of white space as one space, cut at a character to at most limit bytes.
func Clean(s string, limit int) string {
	if len(s) > 4*limit { // the rest cannot matter, and s may be large
		s = s[:4*limit]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return clip.Text(s, limit)
}
