package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSealOfAnyOrder compares seals of many goroutines, which reuse each other's memory, with
// an HMAC made for each alone: nodes of other versions verify what this one signs.
func TestSealOfAnyOrder(t *testing.T) {
	t.Parallel()
	secret, err := NewSecret("sixteen bytes or more")
	if err != nil {
		t.Fatal(err)
	}
	alone := hmac.New(sha256.New, []byte("sixteen bytes or more"))
	fmt.Fprint(alone, "27:muster: calls between nodes")
	key := alone.Sum(nil)
	now := time.UnixMilli(1_700_000_000_000)
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 500 {
				c := call{"POST", "/cluster/v1/" + strings.Repeat("x", (i*37+worker)%700), fmt.Sprintf("192.0.2.%d:%d", worker, i), strings.Repeat("b", i%70)}
				s := stamp{now.UnixMilli(), "to", "from", uint64(i)}
				signed := secret.sign(c, s)
				plain := fmt.Sprintf("%d to from %d", s.ms, i)
				h := hmac.New(sha256.New, key)
				for _, part := range []string{c.method, c.uri, plain, c.client, c.body} {
					fmt.Fprintf(h, "%d:%s", len(part), part)
				}
				if want := fmt.Sprintf("%s %x", plain, h.Sum(nil)); signed != want {
					t.Errorf("%q, want %q", signed, want)
					return
				}
				if got, ok := secret.verify(c, signed, now); !ok || got != s {
					t.Errorf("%q is not verified: %+v", signed, got)
					return
				}
			}
		})
	}
	wait.Wait()
}
