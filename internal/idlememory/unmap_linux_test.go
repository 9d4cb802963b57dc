package idlememory

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What may be unmapped: the text and the constants of the executable, and nothing that
// is written, private, shared, or of no file.
const smaps = `00400000-0049a000 r-xp 00000000 fe:00 525 /usr/bin/muster server (deleted)
Size:                616 kB
Rss:                 400 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0049a000-004a0000 r-xp 0009a000 fe:00 525 /usr/bin/muster
Rss:                  24 kB
Anonymous:             4 kB
004a0000-004b0000 r--p 000a0000 fe:00 525 /usr/bin/muster
Rss:                  64 kB
Anonymous:             0 kB
004b0000-004c0000 r--p 000b0000 fe:00 525 /usr/bin/muster
Rss:                   0 kB
Anonymous:             0 kB
004c0000-004d0000 rw-p 000c0000 fe:00 525 /usr/bin/muster
Rss:                  64 kB
Anonymous:             0 kB
004d0000-004e0000 r--s 00000000 fe:00 526 /data/shared
Rss:                  64 kB
Anonymous:             0 kB
004e0000-004f0000 r--p 00000000 fe:00 527 /data/without-figures
Rss:                  64 kB
c000000000-c000400000 r--p 00000000 00:00 0
Rss:                2048 kB
Anonymous:             0 kB
7ffd1000-7ffd3000 r-xp 00000000 00:00 0 [vdso]
Rss:                   8 kB
Anonymous:             0 kB
`

func TestOnlyUnwrittenFilesAreUnmapped(t *testing.T) {
	t.Parallel()
	have, err := unwritten(strings.NewReader(smaps))
	want := []mapping{{0x400000, 0x49a000, 400 << 10}, {0x4a0000, 0x4b0000, 64 << 10}}
	if err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("%+v, %v; want %+v", have, err, want)
	}
	for _, wrong := range []string{"400000 r-xp 0 0 0 /a\n", "400000-x r-xp 0 0 0 /a\n", "1-2 r-xp 0 0 0 /a\nRss: many kB\n"} {
		if have, err := unwritten(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q: %+v", wrong, have)
		}
	}
}

// TestWhatWasUnmappedIsThereAgain maps a file as the loader maps the executable: pages of
// the file are unmapped, and hold the same when they are used; a page that was written
// before it became read-only stays.
func TestWhatWasUnmappedIsThereAgain(t *testing.T) {
	const size = 1 << 20
	path := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("muster! "), size/8)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped := func(access int) []byte {
		b, err := unix.Mmap(int(f.Fd()), 0, size, access, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Munmap(b) })
		return b
	}
	constants, relocated := mapped(unix.PROT_READ), mapped(unix.PROT_READ|unix.PROT_WRITE)
	relocated[4096] = 'M'
	if err := unix.Mprotect(relocated, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(constants, content) { // reads all pages
		t.Fatal("the file was mapped wrongly")
	}
	before := residentOf(t, constants)
	unmapped, err := Release()
	if err != nil || unmapped < size || before < size {
		t.Errorf("%d bytes unmapped, %v; %d of the file were resident", unmapped, err, before)
	}
	if left := residentOf(t, constants); left > 0 {
		t.Errorf("%d bytes stay mapped", left)
	}
	if relocated[4096] != 'M' {
		t.Error("a written page was lost")
	}
	if !bytes.Equal(constants, content) {
		t.Error("the file reads differently after it was unmapped")
	}
}

// residentOf returns the resident bytes of b, a whole mapping without private pages.
func residentOf(t *testing.T, b []byte) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	all, err := unwritten(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if start := uintptr(unsafe.Pointer(unsafe.SliceData(b))); m.start <= start && start+uintptr(len(b)) <= m.end {
			return m.resident
		}
	}
	return 0
}
