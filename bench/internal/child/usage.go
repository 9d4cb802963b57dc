package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since it started.
type Usage struct {
	// CPU is user and system time; the kernel counts it in steps of 10 ms.
	CPU time.Duration
	// RSSBytes is the memory it has resident, PeakRSSBytes the most it had.
	RSSBytes, PeakRSSBytes int64
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux Go runs on.
const ticksPerSecond = 100

// UsageOf reads a process's usage from /proc (Linux only).
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading CPU time: %w", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading memory: %w", err)
	}
	return parseUsage(stat, status)
}

func parseUsage(stat, status []byte) (Usage, error) {
	var u Usage
	// The name in parentheses may hold anything; fields count from behind it.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return u, fmt.Errorf("/proc stat has %d fields: %.100q", len(fields), stat)
	}
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return u, fmt.Errorf("/proc stat: %w", err)
		}
		u.CPU += time.Duration(n) * time.Second / ticksPerSecond
	}
	for name, into := range map[string]*int64{"VmRSS": &u.RSSBytes, "VmHWM": &u.PeakRSSBytes} {
		kB, err := statusLine(string(status), name)
		if err != nil {
			return u, fmt.Errorf("/proc status: %w", err)
		}
		*into = kB << 10
	}
	return u, nil
}

// statusLine reads a line "name: N kB".
func statusLine(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s line", name)
}

// MachineCPU is the time in which the machine's processors have worked for this
// machine, since it started (Linux only).
func MachineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	return parseStat(string(text))
}

// parseStat is the time in which the processors worked for this machine, of the
// first line of /proc/stat.
func parseStat(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %.100q", line)
	}
	var busy time.Duration
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		busy += time.Duration(n) * (time.Second / ticksPerSecond)
	}
	return busy, nil
}

// AvailableBytes is the memory that processes can take before the machine swaps
// (Linux only).
func AvailableBytes() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading memory: %w", err)
	}
	kB, err := statusLine(string(text), "MemAvailable")
	return kB << 10, err
}

// OpenFiles is how many files and connections a process has open (Linux only).
func OpenFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("counting open files: %w", err)
	}
	return len(entries), nil
}
