package paging

import (
	"encoding/binary"
	"slices"
)

// Age is a place in a list that is sorted by age.
type Age struct {
	CreatedMs int64 // Unix milliseconds
	ID        string
}

func (x Age) before(y Age) bool {
	return x.CreatedMs < y.CreatedMs || x.CreatedMs == y.CreatedMs && x.ID < y.ID
}

// DecodeAge reads a cursor of [PageByAge]; nil when there is none. The error is
// [ErrCursor].
func DecodeAge(cursor []byte) (*Age, error) {
	b, err := Decode(cursor, ByAge, 0)
	if b == nil || err != nil {
		return nil, err
	}
	if len(b) < 8 {
		return nil, ErrCursor
	}
	return &Age{int64(binary.LittleEndian.Uint64(b)), string(b[8:])}, nil
}

// PageByAge is the part of a list, which is sorted by age, behind a place, and
// the cursor of what follows, "" for nothing. What stood at the place may be
// gone.
func PageByAge[T any](list []T, after *Age, limit int, of func(*T) Age) (part []T, next string) {
	return pageByAge(list, after, limit, of, Age.before)
}

// pageByAge is [PageByAge] of a list in the order of before.
func pageByAge[T any](list []T, after *Age, limit int, of func(*T) Age, before func(x, y Age) bool) (part []T, next string) {
	if after != nil {
		at := slices.IndexFunc(list, func(x T) bool { return before(*after, of(&x)) })
		if at < 0 {
			at = len(list)
		}
		list = list[at:]
	}
	if len(list) <= limit || limit < 1 {
		return list, ""
	}
	last := of(&list[limit-1])
	b := binary.LittleEndian.AppendUint64(nil, uint64(last.CreatedMs))
	return list[:limit], Encode(ByAge, append(b, last.ID...))
}
