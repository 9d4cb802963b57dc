package resolver

import "testing"

// TestPublishedHalfWritten: a reader that meets one that writes, or that was
// stopped amid it, does not take what it reads for an answer.
func TestPublishedHalfWritten(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	var p Published
	p.All(r.m)
	p.sequence.Add(1)
	if _, _, ok := p.Segments(testAccount, 0); ok {
		t.Error("what is being written is answered")
	}
	p.sequence.Add(1)
	if p.read(testAccount, func(*publishedSegments, int64) { p.sequence.Add(2) }) {
		t.Error("what was written meanwhile is answered")
	}
	if _, _, ok := p.Segments(testAccount, 0); !ok {
		t.Error("what is whole is not answered")
	}
}
