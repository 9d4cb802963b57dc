package keyapi

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// age is a place in a list that is sorted by age.
type age struct {
	createdMs int64
	id        string
}

func (x age) before(y age) bool {
	return x.createdMs < y.createdMs || x.createdMs == y.createdMs && x.id < y.id
}

// cursorAge begins cursors of lists by age. Each kind has its own byte.
const cursorAge = 1

var cursorText = base64.RawURLEncoding

// cursorFault answers a cursor that is none.
const cursorFault = "cursor Input should be one that this call answered; leave it out to start at the beginning"

// after reads the query's cursor of a list by age; nil if none was given.
func (c *call) after() (*age, error) {
	text := string(c.QueryArgs().Peek("cursor"))
	if text == "" {
		return nil, nil
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) < 1+8 || b[0] != cursorAge {
		return nil, Fail(cursorFault)
	}
	return &age{int64(binary.LittleEndian.Uint64(b[1:])), string(b[9:])}, nil
}

// pageByAge is the part of a list, which is sorted by age, behind a place. What
// stood there may be gone.
func pageByAge[T any](list []T, after *age, limit int, of func(*T) age) (part []T, next string) {
	if after != nil {
		at := slices.IndexFunc(list, func(x T) bool { return after.before(of(&x)) })
		if at < 0 {
			at = len(list)
		}
		list = list[at:]
	}
	if len(list) <= limit {
		return list, ""
	}
	last := of(&list[limit-1])
	b := binary.LittleEndian.AppendUint64([]byte{cursorAge}, uint64(last.createdMs))
	return list[:limit], cursorText.EncodeToString(append(b, last.id...))
}
