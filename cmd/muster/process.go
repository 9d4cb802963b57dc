package main

import (
	"fmt"
	"io"
	"log/slog"
)

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func wrongUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// process is what a command has of its surroundings.
type process struct {
	args           []string
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	// log takes the last error of a service whose log lines are JSON; nil otherwise.
	log *slog.Logger
	// replace starts the program again in place of the process, with a variable
	// NAME=VALUE in its environment; nil where the process must stay.
	replace func(variable string) error
}
