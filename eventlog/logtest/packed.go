package logtest

import (
	"bytes"
	"encoding/binary"

	"github.com/klauspost/compress/s2"
)

// Packed is what is compressed in the bytes of a segment or of the file beside it, in the layout
// of docs/formats.md, one after the other: tests that look for a text in files look here, too.
// It goes by the heads of batches alone, so it finds also what is not read any more.
func Packed(file []byte) (out []byte) {
	le := binary.LittleEndian
	add := func(packed []byte) {
		if len(packed) < 4 {
			return
		}
		block := packed[:len(packed)-4]
		if n, err := s2.DecodedLen(block); err != nil || n > 64<<20 {
			return
		}
		if text, err := s2.Decode(nil, block); err == nil {
			out = append(out, text...)
		}
	}
	magic := le.AppendUint32(nil, 0xB7C4A5E9)
	for b := file; ; b = b[4:] {
		i := bytes.Index(b, magic)
		if i < 0 {
			break
		}
		b = b[i:]
		if len(b) > 48 && le.Uint32(b[4:]) == 4 {
			add(b[48:][:min(int(le.Uint32(b[32:])), len(b)-48)])
		}
	}
	if len(file) < 48 || !bytes.HasPrefix(file, []byte("MUSTRRED\x02")) {
		return out
	}
	for b := file[48:]; len(b) > 24; {
		at := 24 + 4*int(le.Uint32(b[16:]))
		end := at + int(le.Uint32(b[20:]))
		if at > end || end > len(b) {
			break
		}
		add(b[at:end])
		b = b[min(end+4, len(b)):]
	}
	return out
}
