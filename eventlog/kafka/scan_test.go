package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog/logtest"
)

// sealed is a record set as fetched: the batch of these records at base.
func sealed(t testing.TB, base int64, compression string, records ...[]byte) []byte {
	t.Helper()
	buf := make([]byte, prefixSize)
	for i, r := range records {
		buf = appendRecord(buf, i, nil, r)
	}
	codec, err := Options{Compression: compression}.codec()
	if err != nil {
		t.Fatal(err)
	}
	set, err := sealBatch(buf, len(records), codec)
	if err != nil {
		t.Fatal(err)
	}
	set = bytes.Clone(set[sizePrefix:])
	binary.BigEndian.PutUint64(set, uint64(base))
	return set
}

// fixCRC makes the checksum of the first batch right again.
func fixCRC(set []byte) []byte {
	size := 12 + int(binary.BigEndian.Uint32(set[atLength:]))
	binary.BigEndian.PutUint32(set[atCRC:], crc32.Checksum(set[atAttributes:size], castagnoli))
	return set
}

func payloads(n, size int) (out [][]byte) {
	for i := range n {
		out = append(out, logtest.Payload(int64(i), size*i%4000))
	}
	return out
}

func TestBatchesReadBack(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		first, second := payloads(100, 37), payloads(3, 1000)
		first[7] = nil
		set := append(sealed(t, 10, compression, first...), sealed(t, 110, compression, second...)...)
		want := append(first, second...)
		for _, from := range []int64{10, 11, 109, 110, 112, 113} {
			// Kafka cuts an answer amid a batch.
			for _, cut := range []int{0, 5, 60, 90} {
				tail := sealed(t, 113, compression, []byte("cut"), make([]byte, 100))
				s := scanner{inflateLimit: 1 << 20}
				s.reset(append(bytes.Clone(set), tail[:min(cut, len(tail)-1)]...))
				for off := from; off < 113; off++ {
					got, err := s.next(off)
					if err != nil || !bytes.Equal(got, want[off-10]) {
						t.Fatalf("%s: record %d of those from %d: %.20q, %v", compression, off, from, got, err)
					}
				}
				if _, err := s.next(113); err != errNoMore {
					t.Fatalf("%s: behind the end: %v", compression, err)
				}
				if end := endOf(s.set, from); end != 113 {
					t.Fatalf("%s: the end is %d", compression, end)
				}
			}
		}
	}
}

// TestDamageIsNamed: what is not as Muster writes and Kafka keeps it is a fault
// that says what is wrong, never a record less.
func TestDamageIsNamed(t *testing.T) {
	be := binary.BigEndian
	for _, c := range []struct {
		name, reason string
		from         int64
		spoil        func(set []byte) []byte
	}{
		{"gap before the batch", "offset 4 is missing, the next batch begins at offset 5", 4, func(b []byte) []byte { return b }},
		{"bit in the body", "checksum", 5, func(b []byte) []byte { b[len(b)-3] ^= 1; return b }},
		{"bit in the head", "checksum", 5, func(b []byte) []byte { b[30] ^= 1; return b }},
		{"record removed", "removed", 5, func(b []byte) []byte { be.PutUint32(b[atRecords:], 2); return fixCRC(b) }},
		{"offsets to spare", "removed", 5, func(b []byte) []byte { be.PutUint32(b[atLastDelta:], 7); return fixCRC(b) }},
		{"no records", "removed", 5, func(b []byte) []byte { be.PutUint32(b[atRecords:], 0); return fixCRC(b) }},
		{"huge count", "removed", 5, func(b []byte) []byte { be.PutUint32(b[atRecords:], 1<<31-1); return fixCRC(b) }},
		{"negative delta", "last offset delta", 5, func(b []byte) []byte { be.PutUint32(b[atLastDelta:], 1<<31); return fixCRC(b) }},
		{"negative offset", "base offset", 5, func(b []byte) []byte { b[0] = 0x80; return b }},
		{"transaction", "transaction", 5, func(b []byte) []byte { b[atAttributes+1] |= flagTransactional; return fixCRC(b) }},
		{"marker", "transaction", 5, func(b []byte) []byte { b[atAttributes+1] |= flagControl; return fixCRC(b) }},
		{"old format", "message format 1", 5, func(b []byte) []byte { b[atMagic] = 1; return b }},
		{"short", "shorter than its head", 5, func(b []byte) []byte { be.PutUint32(b[atLength:], 20); return b }},
		{"negative length", "shorter than its head", 5, func(b []byte) []byte { be.PutUint32(b[atLength:], 1<<31); return b }},
		{"unknown compression", "unknown compression", 5, func(b []byte) []byte { b[atAttributes+1] |= 6; return fixCRC(b) }},
		{"not compressed", "compressed with zstd", 5, func(b []byte) []byte { b[atAttributes+1] |= 4; return fixCRC(b) }},
		{"record length", "impossible length", 5, func(b []byte) []byte { b[batchHeaderSize], b[batchHeaderSize+1] = 0xfe, 0xff; return fixCRC(b) }},
		{"offset order", "offset 5 is missing", 5, func(b []byte) []byte { b[batchHeaderSize+3] = 2; return fixCRC(b) }},
		{"same offset twice", "the next record has offset 7", 5, func(b []byte) []byte { b[batchHeaderSize+8+3] = 0; return fixCRC(b) }},
		{"key beyond", "impossible key", 5, func(b []byte) []byte { b[batchHeaderSize+4] = 100; return fixCRC(b) }},
		{"value beyond", "impossible value", 5, func(b []byte) []byte { b[batchHeaderSize+5] = 100; return fixCRC(b) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := c.spoil(sealed(t, 5, "none", []byte("a"), []byte("b"), []byte("c")))
			s := scanner{inflateLimit: 1 << 20}
			s.reset(set)
			var err error
			for off := c.from; err == nil && off < 20; off++ {
				_, err = s.next(off)
			}
			var flt *fault
			if !errors.As(err, &flt) || !strings.Contains(flt.reason, c.reason) {
				t.Fatalf("%v; want a fault about %q", err, c.reason)
			}
		})
	}
}

func TestInflatingIsBounded(t *testing.T) {
	set := sealed(t, 0, "zstd", make([]byte, 2<<20))
	if len(set) > 10_000 {
		t.Fatalf("%d bytes: not the test it should be", len(set))
	}
	s := scanner{inflateLimit: 1 << 20}
	s.reset(set)
	if _, err := s.next(0); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Fatal(err)
	}
}

// TestSnappyClaimsAreChecked: a batch that claims blocks of gigabytes is refused
// before room is made for them.
func TestSnappyClaimsAreChecked(t *testing.T) {
	good := sealed(t, 0, "snappy", make([]byte, 5000))
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"block", append([]byte(xerialMagic+"00000000"), 0x7f, 0xff, 0xff, 0xff, 1, 2)},
		{"inflated", append([]byte(xerialMagic+"00000000"), 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0x07, 0)},
		{"inflated, plain", []byte{0xff, 0xff, 0xff, 0xff, 0x07, 0, 0}},
		{"head", []byte(xerialMagic)},
	} {
		set := append(bytes.Clone(good[:batchHeaderSize]), c.body...)
		binary.BigEndian.PutUint32(set[atLength:], uint32(len(set)-12))
		fixCRC(set)
		s := scanner{inflateLimit: 1 << 20}
		s.reset(set)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.next(0)
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 100<<20 {
			t.Errorf("%s: %v, after %d bytes of memory", c.name, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	set := sealed(t, 0, "none", payloads(200, 100)...)
	s := scanner{inflateLimit: 1 << 20}
	n := testing.AllocsPerRun(100, func() {
		s.reset(set)
		for off := range int64(200) {
			if _, err := s.next(off); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n > 0 {
		t.Fatalf("%.2f allocations for 200 records", n)
	}
}

// FuzzScan: any bytes are records in order or an error.
func FuzzScan(f *testing.F) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		f.Add(sealed(f, 3, compression, []byte("a"), make([]byte, 300), []byte("c")), int64(3), true)
	}
	f.Fuzz(func(t *testing.T, set []byte, from int64, fix bool) {
		if len(set) > batchHeaderSize && fix {
			if size := 12 + int64(int32(binary.BigEndian.Uint32(set[atLength:]))); size >= batchHeaderSize && size <= int64(len(set)) {
				fixCRC(set)
			}
		}
		s := scanner{inflateLimit: 1 << 16}
		s.reset(set)
		for off := from; ; off++ {
			data, err := s.next(off)
			if err != nil {
				return
			}
			if len(data) > 1<<16+len(set) {
				t.Fatalf("a record of %d bytes from a set of %d", len(data), len(set))
			}
		}
	})
}

// FuzzAnswer: any bytes are an answer or an error.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, uint8(11))
	f.Add(answer("t", 0, sealed(f, 0, "none", []byte("a"))), uint8(11))
	f.Fuzz(func(t *testing.T, b []byte, version uint8) {
		got, err := parseFetch(b, int16(version%12), 1, "t", 0)
		if err == nil && len(got.records) > len(b) {
			t.Fatal("records from nowhere")
		}
		askVersions(struct {
			*bytes.Reader
			discard
		}{bytes.NewReader(b), discard{}}, "t")
	})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// answer is version 11 of an answer to request 1.
func answer(topic string, code int16, records []byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, 1)
	b = be.AppendUint32(b, 0)
	b = be.AppendUint16(b, 0)
	b = be.AppendUint32(b, 0)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint16(b, uint16(len(topic)))
	b = append(b, topic...)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, 0)
	b = be.AppendUint16(b, uint16(code))
	b = append(b, make([]byte, 24)...)
	b = be.AppendUint32(b, 0)
	b = be.AppendUint32(b, ^uint32(0))
	b = be.AppendUint32(b, uint32(len(records)))
	return append(b, records...)
}

func TestAnswer(t *testing.T) {
	want := []byte("records")
	b := answer("t", 3, want)
	got, err := parseFetch(b, 11, 1, "t", 0)
	if err != nil || got.code != 3 || !bytes.Equal(got.records, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := parseFetch(b[:n], 11, 1, "t", 0); !errors.Is(err, errMalformed) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	for _, f := range []func() (fetched, error){
		func() (fetched, error) { return parseFetch(b, 11, 2, "t", 0) },
		func() (fetched, error) { return parseFetch(b, 11, 1, "u", 0) },
		func() (fetched, error) { return parseFetch(b, 11, 1, "t", 1) },
	} {
		if _, err := f(); !errors.Is(err, errMalformed) {
			t.Fatal(err)
		}
	}
}
