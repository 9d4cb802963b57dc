package duckdb

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOwnThreadsGiveWay: the threads that DuckDB starts, all but one of [Options.Threads], have a
// low priority, so that those that take events come first.
func TestOwnThreadsGiveWay(t *testing.T) {
	before := lowThreads(t)
	s, err := Open(filepath.Join(t.TempDir(), "history.duckdb"), Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := lowThreads(t) - before; n != 2 {
		t.Errorf("%d threads of low priority, expected 2", n)
	}
}

// lowThreads is how many threads of the process have a lower priority than its main thread.
func lowThreads(t *testing.T) (n int) {
	t.Helper()
	nice := func(task string) (int, bool) {
		b, err := os.ReadFile(filepath.Join("/proc/self/task", task, "stat"))
		if err != nil {
			return 0, false // it has ended
		}
		_, fields, _ := strings.Cut(string(b), ") ") // behind the name, field 3 and the others
		v, err := strconv.Atoi(strings.Fields(fields)[19-3])
		if err != nil {
			t.Fatal(err)
		}
		return v, true
	}
	usual, _ := nice(strconv.Itoa(os.Getpid()))
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if v, ok := nice(task.Name()); ok && v > usual {
			n++
		}
	}
	return n
}
