package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// FormatVersion is the version of the record layout this code writes.
const FormatVersion = 1

// EnvelopeSize is the length in bytes of an encoded [Envelope].
const EnvelopeSize = 34

// ErrFormat means a record's bytes are not of a known layout.
var ErrFormat = errors.New("record has a bad format")

// ErrNewerRules means that a record was made under rules that this build does not
// know. It comes with [ErrFormat].
var ErrNewerRules = errors.New("record of a newer version of muster")

// Kind says what a record's body holds.
type Kind uint8

// The kinds of records. Numbers are on disk: never reuse one.
const (
	// KindEvents is a request's events; body: an events body.
	KindEvents Kind = 1
	// KindImport is a chunk of an imported file; body: an import head and an
	// events body.
	KindImport Kind = 2
	// KindContinue lets the state machine continue with queued work; no body.
	KindContinue Kind = 3
	// KindCommand is a change asked for by a person or a program; body: a
	// command name and a JSON object.
	KindCommand Kind = 4
	// KindErase is reserved for the erasure of a profile.
	KindErase Kind = 5
	// KindTick lets log time pass without a request; no body.
	KindTick Kind = 6
	// KindOutcome is reserved for the outcome of a side effect.
	KindOutcome Kind = 7
	// KindChunk is a piece of the past of a segment's conditions; body: a chunk
	// of the segment engine.
	KindChunk Kind = 8
)

// RecordID is the random identity of a record, set once when it is made. The
// state machine drops a record whose id it has just seen, so that an append
// that is retried counts once.
type RecordID [16]byte

// Envelope is the head of every record.
type Envelope struct {
	// Kind says how to read the body.
	Kind Kind
	// Account is the number of the account the record belongs to; 0 for
	// records of the whole partition.
	Account uint64
	// ID is the record's random identity.
	ID RecordID
	// StampMs is the wall clock where the record was made, in Unix
	// milliseconds. Log time is the largest stamp so far.
	StampMs int64
}

// Append appends the encoded envelope to dst.
func (e *Envelope) Append(dst []byte) []byte {
	dst = append(dst, FormatVersion, byte(e.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, e.Account)
	dst = append(dst, e.ID[:]...)
	return binary.LittleEndian.AppendUint64(dst, uint64(e.StampMs))
}

// DecodeEnvelope reads the head of a record and returns the body behind it.
// The error wraps [ErrFormat].
func DecodeEnvelope(data []byte) (Envelope, []byte, error) {
	var e Envelope
	if len(data) < EnvelopeSize {
		return e, nil, fmt.Errorf("%w: %d bytes, shorter than an envelope", ErrFormat, len(data))
	}
	if data[0] != FormatVersion {
		return e, nil, fmt.Errorf("%w: version %d, this build reads version %d", ErrFormat, data[0], FormatVersion)
	}
	e.Kind = Kind(data[1])
	e.Account = binary.LittleEndian.Uint64(data[2:])
	copy(e.ID[:], data[10:])
	e.StampMs = int64(binary.LittleEndian.Uint64(data[26:]))
	return e, data[EnvelopeSize:], nil
}
