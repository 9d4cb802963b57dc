package services

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range that kernels use for outgoing connections:
// a stopped server's port must still be free when it starts again.
const (
	firstPort = 15000
	lastPort  = 32000
)

// FreePorts returns n different ports of 127.0.0.1 that nobody listens on. They
// are outside the usual range of outgoing connections, so that they stay free
// while a server that uses them is down.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for try := 0; len(ports) < n; try++ {
		if try == 1000 {
			return nil, errors.New("no free ports on 127.0.0.1")
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		// Held until all are chosen, or one could be chosen twice.
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
