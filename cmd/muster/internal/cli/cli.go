package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Flags are the flags of one command.
type Flags struct {
	*flag.FlagSet
	given map[string]bool
	help  func()
}

// New returns the flags of a command. usage is what stands above the list of
// flags in its help.
func New(name, usage string, out io.Writer) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), given: map[string]bool{}}
	// The package writes the whole help under each error; Parse does it when it is
	// asked for.
	f.SetOutput(io.Discard)
	f.FlagSet.Usage = func() {}
	f.help = func() {
		fmt.Fprintf(out, "%s\n\nFlags (each also reads its environment variable):\n", usage)
		f.VisitAll(func(x *flag.Flag) {
			value, text := flag.UnquoteUsage(x)
			fmt.Fprintf(out, "  --%s %s\n        %s", x.Name, value, text)
			if x.DefValue != "" && x.DefValue != "false" {
				fmt.Fprintf(out, " (default %s)", x.DefValue)
			}
			fmt.Fprintf(out, " [%s]\n", Env(x.Name))
		})
	}
	return f
}

// Env is the environment variable of a flag.
func Env(name string) string {
	return "MUSTER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Parse reads the arguments, then the environment for flags that were not
// given. It returns the arguments that are no flags. Help that is asked for is
// written, and the error is then [flag.ErrHelp].
func (f *Flags) Parse(args []string, lookup func(string) (string, bool)) ([]string, error) {
	var rest []string
	for {
		err := f.FlagSet.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			f.help()
		}
		if err != nil {
			return nil, inOurWords(err)
		}
		left := f.Args()
		if len(left) == 0 {
			break
		}
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			rest = append(rest, left...)
			break
		}
		rest = append(rest, left[0])
		args = left[1:]
	}
	f.Visit(func(x *flag.Flag) { f.given[x.Name] = true })
	var err error
	f.VisitAll(func(x *flag.Flag) {
		value, ok := lookup(Env(x.Name))
		if f.given[x.Name] || !ok || value == "" {
			return
		}
		values := []string{value}
		if _, ok := x.Value.(Repeated); ok {
			values = strings.Split(value, ",")
		}
		for _, v := range values {
			if e := x.Value.Set(strings.TrimSpace(v)); e != nil {
				err = errors.Join(err, fmt.Errorf("invalid value %q of %s: %w", value, Env(x.Name), e))
			}
		}
	})
	return rest, err
}

// inOurWords names flags with the two hyphens that the documentation has.
func inOurWords(err error) error {
	text := err.Error()
	for _, x := range []struct{ theirs, ours string }{
		{"flag provided but not defined: -", "there is no flag --"},
		{"flag needs an argument: -", "a value is missing after --"},
		{" for flag -", " of --"},
		{" for -", " of --"}, // of boolean flags
	} {
		if strings.Contains(text, x.theirs) {
			text = strings.Replace(text, x.theirs, x.ours, 1)
			text = strings.Replace(text, ": parse error", ": use true or false", 1) // others say what they want
			return errors.New(text)
		}
	}
	return err
}

// Given reports whether a flag stood in the arguments.
func (f *Flags) Given(name string) bool { return f.given[name] }

// Repeated marks flags that may be given several times; their environment
// variable takes several values between commas.
type Repeated interface {
	flag.Value
	Repeated()
}

// Size is a number of bytes, such as 8MiB.
type Size int64

// Size adds a flag of a number of bytes.
func (f *Flags) Size(name string, value int64, usage string) *Size {
	s := Size(value)
	f.Var(&s, name, usage)
	return &s
}

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

// Set implements [flag.Value].
func (s *Size) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return errors.New("use a number of bytes, such as 8388608 or 8MiB")
}

// String implements [flag.Value].
func (s *Size) String() string {
	if s == nil {
		return ""
	}
	n := int64(*s)
	for i := 3; i >= 0; i-- {
		if u := units[i]; n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
