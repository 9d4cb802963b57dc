package cli

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Range bounds the values of a flag of a number, a size or a duration (in
// nanoseconds), least and most included. It applies to the environment too, but not
// to the default.
func (f *Flags) Range(name string, least, most int64) {
	f.bound(name, bounded{least: least, most: most})
}

// ZeroOrRange is [Flags.Range] for a flag that may be 0 as well.
func (f *Flags) ZeroOrRange(name string, least, most int64) {
	f.bound(name, bounded{least: least, most: most, zero: true})
}

func (f *Flags) bound(name string, b bounded) {
	x := f.Lookup(name)
	b.integer = x.Value.(integer)
	x.Value = &b
}

// integer is a value that bounds can be compared with.
type integer interface {
	flag.Value
	// amount returns the value as bounds are given.
	amount() int64
	// format writes an amount as the user does.
	format(amount int64) string
}

// bounded refuses values outside of bounds.
type bounded struct {
	integer
	least, most int64
	zero        bool // 0 is allowed too
}

// Set implements [flag.Value].
func (b *bounded) Set(text string) error {
	if err := b.integer.Set(text); err != nil {
		return err
	}
	n := b.amount()
	if n >= b.least && n <= b.most || n == 0 && b.zero {
		return nil
	}
	want := "at least " + b.format(b.least)
	if n > b.most {
		want = "at most " + b.format(b.most)
	} else if b.zero {
		want = "0 or " + want
	}
	return fmt.Errorf("use %s", want)
}

// String implements [flag.Value]. Package flag calls it on the zero value, too.
func (b *bounded) String() string {
	if b == nil || b.integer == nil {
		return ""
	}
	return b.integer.String()
}

func (d *duration) amount() int64 { return int64(*d) }
func (n *number) amount() int64   { return int64(*n) }
func (s *Size) amount() int64     { return int64(*s) }

func (d *duration) format(amount int64) string {
	text := time.Duration(amount).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

func (n *number) format(amount int64) string { return strconv.FormatInt(amount, 10) }

func (s *Size) format(amount int64) string { return (*Size)(&amount).String() }
