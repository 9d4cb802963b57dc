package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// jsonLines reads one event a line; blank lines are no rows.
type jsonLines struct {
	in   *bufio.Reader
	line int
	buf  []byte
}

func (j *jsonLines) next(r *row) error {
	for {
		text, tooLong, err := j.readLine()
		if err != nil {
			return err
		}
		j.line++
		*r = row{json: bytes.TrimSpace(text), line: j.line}
		if tooLong {
			r.json, r.fault = nil, fmt.Sprintf("the line is longer than %d bytes", maxRowBytes)
		} else if len(r.json) == 0 {
			continue
		}
		return nil
	}
}

// readLine reads a line; of one that is too long it skips the rest.
func (j *jsonLines) readLine() (text []byte, tooLong bool, err error) {
	j.buf = j.buf[:0]
	for {
		part, err := j.in.ReadSlice('\n')
		if tooLong = tooLong || len(j.buf)+len(part) > maxRowBytes; !tooLong {
			if err == nil && len(j.buf) == 0 {
				return part, false, nil
			}
			j.buf = append(j.buf, part...)
		}
		switch {
		case err == nil:
			return j.buf, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(j.buf) == 0 && len(part) == 0 && !tooLong {
				return nil, false, io.EOF
			}
			return j.buf, tooLong, nil
		default:
			return nil, false, err
		}
	}
}
