// Package logbuffer keeps what a server logs for the test that runs it.
package logbuffer

import (
	"bytes"
	"sync"
)

// Buffer keeps the lines of a log. Tests may read it while servers write it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
