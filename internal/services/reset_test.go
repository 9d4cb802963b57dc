package services

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestClickHouseResetConnections: clients that vanish in the middle of a
// request, as those that are killed do, leave the server alone.
func TestClickHouseResetConnections(t *testing.T) {
	server := OwnClickHouse(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 5 {
		c, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		// The beginning of a client's greeting, in pieces, and then a reset.
		if _, err := c.Write([]byte{0, 200}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // nothing tells that the server has read it
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	time.Sleep(time.Second) // nothing may happen in a while: a server that ends does so a moment later
	conn := connect(t, server.DSN(), "default")
	if n := one[uint8](ctx, t, conn, "SELECT toUInt8(7)"); n != 7 {
		t.Errorf("%d", n)
	}
}
