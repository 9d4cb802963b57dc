package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestReader(t *testing.T) {
	b := AppendBlock([]byte{7}, []byte("abc"))
	b = binary.LittleEndian.AppendUint32(b, 5)
	b = binary.LittleEndian.AppendUint64(b, 6)
	b = AppendBlock(binary.AppendUvarint(b, 300), nil)
	b = append(b, 2, 'x', 'y')
	r := Reader{B: b}
	if r.U8() != 7 || string(r.Block()) != "abc" || r.U32() != 5 || r.U64() != 6 || r.Uvarint() != 300 || r.Block() != nil || r.Count(1) != 2 || string(r.Take(2)) != "xy" {
		t.Fatalf("read otherwise, %+v", r)
	}
	if r.Bad || len(r.B) != 0 {
		t.Fatalf("%+v", r)
	}
	if r.U8() != 0 || !r.Bad || r.U64() != 0 || r.Block() != nil {
		t.Fatalf("behind the end: %+v", r)
	}
}

func TestFaults(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"take":    func(r *Reader) { r.Take(5) },
		"u32":     func(r *Reader) { r.U8(); r.U32() },
		"block":   func(r *Reader) { r.Block() },
		"count":   func(r *Reader) { r.Count(2) },
		"uvarint": func(r *Reader) { r.Take(4); r.Uvarint() },
	} {
		r := Reader{B: []byte{9, 0, 0, 0}}
		if read(&r); !r.Bad || r.B != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := Reader{B: bytes.Repeat([]byte{0xff}, 20)} // a varint without an end
	if r.Count(1) != 0 || !r.Bad {
		t.Errorf("%+v", r)
	}
	r = Reader{B: []byte{1, 2, 3}}
	if out := append(r.Take(1), 9); r.B[0] != 2 || out[1] != 9 {
		t.Error("appending to what was taken writes into what follows")
	}
}
