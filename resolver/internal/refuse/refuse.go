// Package refuse has what a record is refused with, a reason that its sender can act on, and
// the errors of a node that has not taken it.
package refuse

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/weborigin"
)

// MaxNameBytes bounds the names that people give, such as of segments and API keys.
const MaxNameBytes = 200

// Errors of a node that has not stored a record, wrapped.
var (
	// ErrOverloaded means too much work is waiting.
	ErrOverloaded = errors.New("too much work is waiting")
	// ErrNotOwner means the partition of the record's account is not served here.
	ErrNotOwner = errors.New("this node does not serve the account's partition")
)

// Refusal is a reason the caller can act on.
type Refusal struct {
	// Code classifies the refusal: "invalid", "not_found", "conflict",
	// "limit", "forbidden".
	Code string
	// Field is the field at fault, as the caller wrote it; empty if none is.
	Field string
	// Message names the fault and the remedy in a sentence.
	Message string
}

// Error makes a refusal an error.
func (r *Refusal) Error() string { return r.Message }

// Invalid says that a field has a value that it cannot have.
func Invalid(field, format string, args ...any) *Refusal {
	return &Refusal{Code: "invalid", Field: field, Message: fmt.Sprintf(format, args...)}
}

// NotFound says that what a field names is not there.
func NotFound(field, format string, args ...any) *Refusal {
	return &Refusal{Code: "not_found", Field: field, Message: fmt.Sprintf(format, args...)}
}

// AtLimit says that there is no room for more.
func AtLimit(field, format string, args ...any) *Refusal {
	return &Refusal{Code: "limit", Field: field, Message: fmt.Sprintf(format, args...)}
}

// Forbidden says that the caller may not do this.
func Forbidden(format string, args ...any) *Refusal {
	return &Refusal{Code: "forbidden", Message: fmt.Sprintf(format, args...)}
}

// Conflicts says that the state contradicts it: there is another of that name, or
// something depends on what should go.
func Conflicts(field, format string, args ...any) *Refusal {
	return &Refusal{Code: "conflict", Field: field, Message: fmt.Sprintf(format, args...)}
}

// Name refuses a name that is empty or longer than [MaxNameBytes].
func Name(name string) *Refusal {
	if strings.TrimSpace(name) == "" {
		return Invalid("name", "name must not be empty")
	}
	if len(name) > MaxNameBytes {
		return Invalid("name", "name must have at most %d bytes", MaxNameBytes)
	}
	return nil
}

// Origins reads the field allowed_origins: each origin once, as [weborigin.Parse] returns
// it. It refuses more than most of them.
func Origins(texts []string, most int) ([]string, *Refusal) {
	if len(texts) > most {
		return nil, Invalid("allowed_origins", "allowed_origins must have at most %d entries", most)
	}
	list := make([]string, 0, len(texts))
	for _, text := range texts {
		origin, ok := weborigin.Parse(text)
		if !ok {
			return nil, Invalid("allowed_origins", `allowed_origins: %q is no origin; use scheme and host, such as https://shop.example or https://*.shop.example, or "*" for all`, clip.Valid(text, 100))
		}
		if !slices.Contains(list, origin) {
			list = append(list, origin)
		}
	}
	return list, nil
}
