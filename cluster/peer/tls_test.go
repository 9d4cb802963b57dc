package peer

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/tlspair"
	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

// TestTLS: nodes call each other over TLS, and a node with another certificate is
// turned to again as one that cannot be connected to: nothing was sent.
func TestTLS(t *testing.T) {
	t.Parallel()
	open := func(dir string) *tlspair.Pair {
		cert, key := tlspairtest.Files(t, dir, "cluster.test")
		p, err := tlspair.Open(tlspair.Options{CertFile: cert, KeyFile: key, Now: time.Now})
		ok(t, err)
		return p
	}
	pair := open(t.TempDir())
	x := newTable()
	x.pair, x.tls = pair, pair.Peer
	router, owner := newMember(t, x, "router", secret, time.Second), newMember(t, x, "owner", secret, time.Second)
	owner.state.own(1, true)
	x.set(1, owner.Node)
	for range 3 { // the second and third on a connection that is there
		if res, body := router.send("GET", "/x", nil); res.StatusCode != 200 || body != "owner here" {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	x.pair = open(t.TempDir())
	x.tls = func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	stranger := newMember(t, x, "stranger", secret, time.Second)
	stranger.state.own(1, true)
	x.set(1, stranger.Node)
	before := router.peers.unreached.Get()
	if res, body := router.send("POST", "/x", []byte("x")); res.StatusCode != 503 || !strings.Contains(body, "nothing was changed") {
		t.Errorf("a node with another certificate: %d %s", res.StatusCode, body)
	}
	if router.peers.unreached.Get() == before {
		t.Error("the node counts as reached")
	}
	if router.peers.mayReport() {
		t.Error("the log does not say why")
	}
}
