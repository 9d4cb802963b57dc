package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// checkHostPort refuses what is not HOST:PORT with a port that there can be. example
// is shown with the error.
func checkHostPort(flag, value, example string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(value)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return "", "", wrongUsage("--%s is %q; use HOST:PORT with a port up to 65535, such as %s", flag, value, example)
	}
	return host, port, nil
}

// listenError says why an address cannot be listened on, and what to do.
func listenError(address string, err error) error {
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--listen: another process listens on %s (address already in use); stop it, or choose another port", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("--listen: %s is no address of this machine; use one that it has, or :PORT for all of them", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("--listen: this user may not listen on %s; choose a port from 1024 up, or give the process the capability CAP_NET_BIND_SERVICE", address)
	case errors.As(err, &unknown):
		return fmt.Errorf("--listen: the host of %s is unknown; use an address of this machine, or :PORT for all of them", address)
	}
	return fmt.Errorf("--listen: %s cannot be listened on: %w; choose another address", address, err)
}
