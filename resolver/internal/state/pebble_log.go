package state

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// PebbleLogger hands Pebble's messages on: errors as such, the rest for
// debugging only. What fails in the background Pebble tries again without a pause,
// and says so each time; one message a second is enough. A full disk has its own
// line, see disk.
type PebbleLogger struct {
	log  *slog.Logger
	last *atomic.Int64 // when the last error was handed on, in Unix seconds
	end  func(why string)
}

// NewPebbleLogger is a logger that panics when Pebble cannot continue, see [PebbleLogger.Ending].
func NewPebbleLogger(log *slog.Logger) PebbleLogger {
	return PebbleLogger{log: log, last: new(atomic.Int64)}
}

// Ending is the logger with a way to end the process, nil for a panic.
func (l PebbleLogger) Ending(end func(why string)) PebbleLogger {
	l.end = end
	return l
}

func (l PebbleLogger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l PebbleLogger) Errorf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if strings.Contains(message, syscall.ENOSPC.Error()) {
		return
	}
	if now := time.Now().Unix(); l.last.Swap(now) != now {
		l.log.Error("pebble", "message", message)
	}
}

// Fatalf does not return: Pebble must not continue. It may be called in a goroutine of
// Pebble's, where no caller of ours could recover from a panic.
func (l PebbleLogger) Fatalf(format string, args ...any) {
	why := "the state's store cannot continue: " + fmt.Sprintf(format, args...)
	if l.end != nil {
		l.end(why)
	}
	panic(why)
}
