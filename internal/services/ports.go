package services

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken below the range that kernels use for outgoing connections:
// a stopped server's port must still be free when it starts again.
const (
	firstPort = 15000
	lastPort  = 32000
)

// FreePorts returns n different ports of 127.0.0.1 without a listener. They
// are outside the range of outgoing connections, so that they stay free while a
// server that uses them is down, and are given to no other process that asks
// FreePorts as long as this one runs: a broker takes seconds to listen.
func FreePorts(n int) ([]int, error) {
	// Not in the directory for temporary files, which a test may have for itself.
	dir, err := portLocks()
	if err != nil {
		return nil, err
	}
	last := portsEnd()
	ports := make([]int, 0, n)
	for try := 0; len(ports) < n; try++ {
		if try == 1000 {
			return nil, errors.New("no free ports on 127.0.0.1")
		}
		port := firstPort + rand.IntN(last-firstPort)
		ours, err := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		if !ours {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

func portLocks() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ports")
	return dir, os.MkdirAll(dir, 0o700)
}

// portsEnd is where the ports end that this machine's kernel never assigns by
// itself. Where it leaves too few, collisions are met by starting again.
func portsEnd() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return lastPort
	}
	var low int
	if _, err := fmt.Sscan(string(b), &low); err != nil || low < firstPort+1000 {
		return lastPort
	}
	return min(low, lastPort)
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
