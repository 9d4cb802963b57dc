package view

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/account"
)

// TestPublishedHalfWritten: a reader that meets one that writes, or that was
// stopped amid it, does not take what it reads for an answer.
func TestPublishedHalfWritten(t *testing.T) {
	const number = 7
	var p Published
	p.All([]*account.State{account.New(number, 0)}, 0)
	p.sequence.Add(1)
	if _, _, ok := p.Segments(number, 0); ok {
		t.Error("what is being written is answered")
	}
	p.sequence.Add(1)
	if p.read(number, func(*publishedSegments, int64) { p.sequence.Add(2) }) {
		t.Error("what was written meanwhile is answered")
	}
	if _, _, ok := p.Segments(number, 0); !ok {
		t.Error("what is whole is not answered")
	}
}
