package messaging

import (
	"fmt"
	"sync"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/resolver/domains"
)

// maxRingKeys bounds the keys that a ring keeps.
const maxRingKeys = 1024

// keyRing keeps the keys that sign messages: to read an RSA key costs twice as
// much as to sign with it.
type keyRing struct {
	mu   sync.Mutex
	keys map[ringKey]*email.Key
}

// ringKey is all that a key is made of, so what is kept is never out of date.
type ringKey struct{ domain, selector, private string }

// of returns the keys of a sender domain, none when it signs nothing.
func (r *keyRing) of(d domains.Domain) ([]*email.Key, error) {
	if d.PrivateKey == "" {
		return nil, nil
	}
	at := ringKey{d.Name, d.Selector, d.PrivateKey}
	r.mu.Lock()
	key := r.keys[at]
	r.mu.Unlock()
	if key != nil {
		return []*email.Key{key}, nil
	}
	key, err := email.ParseKey(d.Name, d.Selector, []byte(d.PrivateKey))
	if err != nil {
		return nil, fmt.Errorf("the key of the sender domain %s: %w", d.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil || len(r.keys) >= maxRingKeys {
		r.keys = map[ringKey]*email.Key{}
	}
	r.keys[at] = key
	return []*email.Key{key}, nil
}
