package resolver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// pebbleLogger hands Pebble's messages on: errors as such, the rest for
// debugging only. What fails in the background Pebble tries again without a pause,
// and says so each time; one message a second is enough. A full disk has its own
// line, see disk.
type pebbleLogger struct {
	log  *slog.Logger
	last *atomic.Int64 // when the last error was handed on, in Unix seconds
	end  func(why string)
}

func newPebbleLogger(log *slog.Logger) pebbleLogger {
	return pebbleLogger{log: log, last: new(atomic.Int64)}
}

// ending is the logger with a way to end the process, nil for a panic.
func (l pebbleLogger) ending(end func(why string)) pebbleLogger {
	l.end = end
	return l
}

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if strings.Contains(message, syscall.ENOSPC.Error()) {
		return
	}
	if now := time.Now().Unix(); l.last.Swap(now) != now {
		l.log.Error("pebble", "message", message)
	}
}

// Fatalf does not return: Pebble must not go on. It may be called in a goroutine of
// Pebble's, where nobody could recover from a panic.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	why := "the state's store cannot go on: " + fmt.Sprintf(format, args...)
	if l.end != nil {
		l.end(why)
	}
	panic(why)
}
