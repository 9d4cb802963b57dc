package main

import (
	"flag"
	"fmt"
	"io"
)

// streams are a command's input and outputs.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func (s streams) logf(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

// newFlags makes a command's flag set, which reports faults as errors.
func newFlags(name string, s streams) *flag.FlagSet {
	f := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	f.SetOutput(s.err)
	return f
}

// parse parses the flags and refuses more than max arguments behind them.
func parse(f *flag.FlagSet, args []string, max int) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > max {
		return fmt.Errorf("%s: argument %q is too much", f.Name(), f.Arg(max))
	}
	return nil
}
