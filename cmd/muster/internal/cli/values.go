package cli

import (
	"errors"
	"strconv"
	"time"
)

// Duration adds a flag of a duration.
func (f *Flags) Duration(name string, value time.Duration, usage string) *time.Duration {
	d := &value
	f.DurationVar(d, name, value, usage)
	return d
}

// DurationVar adds a flag of a duration that sets p.
func (f *Flags) DurationVar(p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var((*duration)(p), name, usage)
}

// Int adds a flag of a whole number.
func (f *Flags) Int(name string, value int, usage string) *int {
	n := &value
	f.Var((*number)(n), name, usage)
	return n
}

// List adds a flag of values between commas, which may be given several times.
func (f *Flags) List(name, usage string) *string {
	l := new(commaList)
	f.Var(l, name, usage)
	return (*string)(l)
}

// commaList is values between commas.
type commaList string

// Repeated implements [Repeated].
func (*commaList) Repeated() {}

// String implements [flag.Value].
func (l *commaList) String() string { return string(*l) }

// Set implements [flag.Value]: it adds values to those there are.
func (l *commaList) Set(text string) error {
	if *l != "" {
		*l += ","
	}
	*l += commaList(text)
	return nil
}

// duration and number say what they want, which those of package flag do not.
type (
	duration time.Duration
	number   int
)

// Set implements [flag.Value].
func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("use a duration with a unit, such as 10s, 500ms or 2m")
	}
	*d = duration(v)
	return nil
}

// String implements [flag.Value].
func (d *duration) String() string {
	if d == nil {
		return ""
	}
	return time.Duration(*d).String()
}

// Set implements [flag.Value].
func (n *number) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("use a whole number, such as 100")
	}
	*n = number(v)
	return nil
}

// String implements [flag.Value].
func (n *number) String() string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}
