package idlememory

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapFiles unmaps the resident pages of this process's unwritten mappings, and returns
// their bytes.
func unmapFiles() (int64, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("unmap files: %w", err)
	}
	defer f.Close()
	all, err := unwritten(f)
	if err != nil {
		return 0, fmt.Errorf("unmap files: %w", err)
	}
	var bytes int64
	for _, m := range all {
		// A mapping that is gone or locked in memory is refused; the others continue.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno == 0 {
			bytes += m.resident
		}
	}
	return bytes, nil
}

// mapping is a range of addresses of this process.
type mapping struct {
	start, end uintptr
	resident   int64 // bytes
}

// unwritten reads the mappings of files that the process may not write and that have no
// private pages, from the form of /proc/PID/smaps: a line for each mapping, and below it
// its figures, one a line.
func unwritten(smaps io.Reader) ([]mapping, error) {
	var all []mapping
	var m mapping
	var candidate, private bool // of m; private until its figure says otherwise
	add := func() {
		if candidate && !private && m.resident > 0 {
			all = append(all, m)
		}
	}
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"): // the first line of a mapping
			add()
			var err error
			if m, err = parseRange(fields[0]); err != nil {
				return nil, err
			}
			access := fields[1]
			candidate = len(fields) > 5 && strings.HasPrefix(fields[5], "/") && (access == "r-xp" || access == "r--p")
			private = true
		case fields[0] == "Rss:" || fields[0] == "Anonymous:":
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("/proc/self/smaps: %q: %w", lines.Text(), err)
			}
			if fields[0] == "Rss:" {
				m.resident = kilobytes << 10
			} else {
				private = kilobytes > 0
			}
		}
	}
	add()
	return all, lines.Err()
}

// parseRange reads "START-END" in hexadecimal digits.
func parseRange(s string) (mapping, error) {
	from, to, _ := strings.Cut(s, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return mapping{}, fmt.Errorf("/proc/self/smaps: %q: %w", s, err)
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return mapping{}, fmt.Errorf("/proc/self/smaps: %q: %w", s, err)
	}
	return mapping{start: uintptr(start), end: uintptr(end)}, nil
}
