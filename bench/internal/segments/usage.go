package segments

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is the user and system time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// procLine reads a line "name: N kB" of a file in /proc.
func procLine(path, name string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}

func rssBytes() (int64, error)       { return procLine("/proc/self/status", "VmRSS") }
func peakRSSBytes() (int64, error)   { return procLine("/proc/self/status", "VmHWM") }
func availableBytes() (int64, error) { return procLine("/proc/meminfo", "MemAvailable") }

// Memory is what the process holds after garbage was collected and handed back.
type Memory struct {
	RSSBytes  int64 `json:"rss_bytes"`
	HeapBytes int64 `json:"go_heap_bytes"`
}

func memoryNow() (Memory, error) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := rssBytes()
	return Memory{rss, int64(m.HeapAlloc)}, err
}

// dirBytes is the size of all files below a directory. Files that vanish
// meanwhile do not count.
func dirBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		if os.IsNotExist(err) {
			err = nil
		}
		return err
	})
	return n, err
}

// freeDiskBytes is the room left for files in a directory.
func freeDiskBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
