package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"
)

// Whoever starts under the id of a member is mostly what that member was before it
// died, and takes its place. But a copy of a node's directory has its id, too, and
// the lock is on the original: so the process of that member is asked first, at an
// address that it alone answers. One that does not answer is dead, or frozen, which
// looks the same.

// askTimeout bounds the question: a machine that is gone must not hold up the start of
// the node that is to take its place.
const askTimeout = time.Second

// TwinError reports that another process has this node's id: one of both runs on a copy
// of the other's data directory.
type TwinError struct {
	// Twin is the node as that process says.
	Twin Node
}

func (e *TwinError) Error() string {
	return fmt.Sprintf("another process has the identity of this one, %s: the data directory of one of them is a copy of the other's", e.Twin)
}

// twin is a [*TwinError] if the process of a former self answers.
func (m *Member) twin(ctx context.Context, former []candidate) error {
	for _, c := range former {
		if c.Self != "" && m.opts.answers(ctx, c.Self) {
			return &TwinError{c.Node}
		}
	}
	return nil
}

// answers reports whether a process answers at an address that no other does, see
// [Options.Self].
func answers(ctx context.Context, self string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, self, nil)
	if err != nil {
		return false // another version's
	}
	// That the answer is that process's shows by the address, not by a certificate.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusNoContent
}
