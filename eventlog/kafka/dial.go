package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	kgo "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// dialer makes connections and knows those that are open, so that Close ends
// what waits on them.
type dialer struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	mu   struct {
		sync.Mutex
		closed bool
		open   map[*trackedConn]struct{}
	}
}

type trackedConn struct {
	net.Conn
	d *dialer
}

func newDialer(dial func(context.Context, string, string) (net.Conn, error)) *dialer {
	d := &dialer{dial: dial}
	d.mu.open = make(map[*trackedConn]struct{})
	return d
}

func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &trackedConn{Conn: nc, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		nc.Close()
		return nil, net.ErrClosed
	}
	d.mu.open[c] = struct{}{}
	return c, nil
}

func (c *trackedConn) Close() error {
	c.d.mu.Lock()
	delete(c.d.mu.open, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}

// close ends all connections, and later ones at once.
func (d *dialer) close() {
	d.mu.Lock()
	open := d.mu.open
	d.mu.closed, d.mu.open = true, nil
	d.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
}

// brokerConn is a connection to one broker, authenticated, for one user.
type brokerConn struct {
	*protocol.Conn
	addr string
	// fetch is the version of Fetch both sides know.
	fetch int16
	id    int32
}

// Versions of Fetch that are spoken: 4 brought message format 2, 11 is the
// newest that kafka-go knows.
const (
	minFetchVersion = 4
	maxFetchVersion = 11
)

// errNoKafka: what answers is no Kafka broker.
var errNoKafka = errors.New("is no Kafka broker, or expects TLS")

// tlsFor is the configuration with the name the broker must prove.
func tlsFor(conf *tls.Config, addr string) *tls.Config {
	if conf.ServerName != "" {
		return conf
	}
	conf = conf.Clone()
	conf.ServerName, _, _ = net.SplitHostPort(addr)
	return conf
}

// askVersions asks what the broker speaks. It is the first thing said, so what
// answers may be anything: nothing is believed before it was looked at.
func askVersions(rw io.ReadWriter, clientID string) (fetch int16, err error) {
	const apiVersions, correlation = 18, 0x4d757374
	be := binary.BigEndian
	req := make([]byte, 4, 14+len(clientID))
	req = be.AppendUint16(req, apiVersions)
	req = be.AppendUint16(req, 0)
	req = be.AppendUint32(req, correlation)
	req = be.AppendUint16(req, uint16(len(clientID)))
	req = append(req, clientID...)
	be.PutUint32(req, uint32(len(req)-4))
	if _, err := rw.Write(req); err != nil {
		return 0, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("what answers %w: it ended the connection", errNoKafka)
		}
		return 0, err
	}
	size := be.Uint32(head[:])
	if size < 10 || size > 1<<16 || be.Uint32(head[4:]) != correlation {
		return 0, fmt.Errorf("what answers %w: its answer begins with %q", errNoKafka, head[:])
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(rw, body); err != nil {
		return 0, err
	}
	if code := int16(be.Uint16(body)); code != 0 {
		return 0, fmt.Errorf("ask for versions: %w", kgo.Error(code))
	}
	n := be.Uint32(body[2:])
	body = body[6:]
	if int64(n)*6 > int64(len(body)) {
		return 0, fmt.Errorf("what answers %w: it names %d versions in %d bytes", errNoKafka, n, len(body))
	}
	for range n {
		key, oldest, newest := be.Uint16(body), int16(be.Uint16(body[2:])), int16(be.Uint16(body[4:]))
		body = body[6:]
		if protocol.ApiKey(key) == protocol.Fetch {
			if oldest > maxFetchVersion || newest < minFetchVersion {
				return 0, fmt.Errorf("the broker speaks versions %d to %d of Fetch, %d to %d are needed", oldest, newest, minFetchVersion, maxFetchVersion)
			}
			return min(newest, maxFetchVersion), nil
		}
	}
	return 0, errors.New("the broker does not serve Fetch: it may be a controller only")
}

// authenticate proves who we are.
func authenticate(ctx context.Context, c *protocol.Conn, addr string, m sasl.Mechanism) error {
	c.SetVersions(map[protocol.ApiKey]int16{protocol.SaslHandshake: 1, protocol.SaslAuthenticate: 1})
	res, err := c.RoundTrip(&saslhandshake.Request{Mechanism: m.Name()})
	if err != nil {
		return err
	}
	if hs, ok := res.(*saslhandshake.Response); !ok || hs.ErrorCode != 0 {
		if !ok {
			return fmt.Errorf("unexpected answer %T", res)
		}
		return fmt.Errorf("%w (the broker takes %v)", kgo.Error(hs.ErrorCode), hs.Mechanisms)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	session, say, err := m.Start(sasl.WithMetadata(ctx, &sasl.Metadata{Host: host}))
	if err != nil {
		return err
	}
	for done := false; !done; {
		res, err := c.RoundTrip(&saslauthenticate.Request{AuthBytes: say})
		if err != nil {
			return err
		}
		auth, ok := res.(*saslauthenticate.Response)
		if !ok {
			return fmt.Errorf("unexpected answer %T", res)
		}
		if auth.ErrorCode != 0 {
			return fmt.Errorf("%w: %s", kgo.Error(auth.ErrorCode), auth.ErrorMessage)
		}
		if done, say, err = session.Next(ctx, auth.AuthBytes); err != nil {
			return err
		}
	}
	return nil
}
