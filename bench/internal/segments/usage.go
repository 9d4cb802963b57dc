package segments

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/idlememory"
)

// cpuTime is the user and system time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory is what the process holds after it gave memory back as an idle server does.
type Memory struct {
	RSSBytes  int64 `json:"rss_bytes"`
	HeapBytes int64 `json:"go_heap_bytes"`
}

func memoryNow() (Memory, error) {
	runtime.GC()
	if _, err := idlememory.Release(); err != nil {
		return Memory{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u, err := child.UsageOf(os.Getpid())
	return Memory{u.RSSBytes, int64(m.HeapAlloc)}, err
}

// dirBytes is the size of all files below a directory.
func dirBytes(dir string) (n int64, err error) {
	sizes, err := server.DiskBytes(dir)
	for _, bytes := range sizes {
		n += bytes
	}
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
