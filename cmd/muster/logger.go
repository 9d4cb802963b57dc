package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// logger writes lines from a level on, in the format that --log-format names.
func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, wrongUsage("--log-level is %q; use debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case formatText:
		// Errors of Pebble, among others, would bring the stack of where they were made.
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if err, is := a.Value.Any().(error); is {
				a.Value = slog.StringValue(err.Error())
			}
			return a
		}
		return slog.New(slog.NewTextHandler(w, options)), nil
	case formatJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, wrongUsage("--log-format is %q; use text or json", format)
}

// The formats of log lines.
const (
	formatText = "text"
	formatJSON = "json"
)

// logThrough has everything that the process writes to standard error go through log:
// its last error, and the lines of libraries that know the standard logger alone.
func (p *process) logThrough(log *slog.Logger, format string) {
	slog.SetDefault(log)
	if format == formatJSON {
		p.log = log
	}
}

// failed writes why a command failed.
func (p *process) failed(why string) {
	if p.log != nil {
		p.log.Error("muster ends", "error", why)
		return
	}
	fmt.Fprintln(p.stderr, "muster:", why)
}

// end ends the process at once, with one line.
func (p *process) end(why string) {
	p.failed(explain(errors.New(why)))
	os.Exit(exitFailed)
}
