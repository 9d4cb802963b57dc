package child

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

const (
	tailBytes = 8 << 10
	lineBytes = 64 << 10
)

// output takes what a child writes: into its log file, the end of it into
// memory, and the first line that says ready into a channel.
type output struct {
	isReady func(string) bool
	ready   chan string

	mu struct {
		sync.Mutex
		file *os.File
		tail []byte
		line []byte
		said bool
	}
}

func newOutput(logFile string, isReady func(string) bool) (*output, error) {
	// The log may hold credentials that the child prints.
	f, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the child's log: %w", err)
	}
	o := &output{isReady: isReady, ready: make(chan string, 1)}
	o.mu.file = f
	return o, nil
}

// Write never fails for want of space in the log: the child must not be slowed
// down or stopped by what it says.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.mu.file.Write(b)
	o.mu.tail = append(o.mu.tail, b...)
	if n := len(o.mu.tail); n > 2*tailBytes {
		o.mu.tail = append(o.mu.tail[:0], o.mu.tail[n-tailBytes:]...)
	}
	if !o.mu.said {
		o.scan(b)
	}
	return len(b), nil
}

// scan looks for the ready line; o.mu is held.
func (o *output) scan(b []byte) {
	o.mu.line = append(o.mu.line, b...)
	for {
		line, rest, found := bytes.Cut(o.mu.line, []byte("\n"))
		if !found {
			break
		}
		if o.isReady != nil && o.isReady(string(line)) {
			o.mu.said, o.mu.line = true, nil
			o.ready <- string(line)
			return
		}
		o.mu.line = rest
	}
	if len(o.mu.line) > lineBytes {
		o.mu.line = nil
	}
}

// Tail is the end of the output.
func (o *output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.mu.tail[max(0, len(o.mu.tail)-tailBytes):])
}

// Close closes the log file.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.file.Close()
}
