package eventlog

import "errors"

// ErrBeingWritten means that a record is in a file that takes further records, where
// nothing can be redacted.
var ErrBeingWritten = errors.New("the file of the record is being written")

// Redaction takes bytes out of a stored record for good and puts others in their
// place. The record keeps its offset.
type Redaction struct {
	Offset int64
	// Splices are in order of their place and do not overlap.
	Splices []Splice
}

// Splice replaces Len bytes at At of a record, as it is read before, by New.
type Splice struct {
	At, Len int
	New     []byte
}

// Apply appends the record that the splices make of data to dst. ok is false when
// they do not fit it.
func (r *Redaction) Apply(dst, data []byte) (out []byte, ok bool) {
	at := 0
	for _, s := range r.Splices {
		if s.At < at || s.Len < 0 || s.At > len(data) || s.Len > len(data)-s.At {
			return dst, false
		}
		dst = append(append(dst, data[at:s.At]...), s.New...)
		at = s.At + s.Len
	}
	return append(dst, data[at:]...), true
}
