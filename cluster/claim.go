package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Node names a node to people and to other nodes.
type Node struct {
	// ID is random and kept with the node's data.
	ID string `json:"node"`
	// Host is the machine's name, Address where other nodes reach it, HOST:PORT.
	Host    string `json:"host"`
	Address string `json:"address"`
}

func (n Node) String() string {
	return fmt.Sprintf("node %s on %s, listening at %s", cmp.Or(n.ID, "(unknown)"), cmp.Or(n.Host, "an unknown host"), cmp.Or(n.Address, "an unknown address"))
}

// claim is a member's statement when it enters the group: the user data
// of Kafka's protocol, as JSON.
type claim struct {
	Node
	// SinceMs is when the process joined first, in Unix milliseconds of its own
	// clock. It decides among members that own nothing, nothing else.
	SinceMs int64 `json:"since"`
	// Self is where this process answers, and no other: see [Options.Self].
	Self string `json:"self,omitempty"`
	// Key is what members share that may own partitions beside each other; a
	// member without one owns them alone.
	Key string `json:"key,omitempty"`
	// Owns are the partitions the member owned in Generation of the group.
	Owns       []int `json:"owns,omitempty"`
	Generation int32 `json:"generation,omitempty"`
	// Warm are partitions that the member can take at once: it has their state and
	// follows their log.
	Warm []int `json:"warm,omitempty"`
	// Leaving reports that the member is about to go: what it owns is to be others'
	// as soon as they are warm.
	Leaving bool `json:"leaving,omitempty"`
}

func (c *claim) encode() ([]byte, error) { return json.Marshal(c) }

// decodeClaim reads a claim; one that cannot be read claims nothing.
func decodeClaim(b []byte) claim {
	var c claim
	if json.Unmarshal(b, &c) != nil {
		return claim{}
	}
	return c
}

func (c *claim) owns(partition int) bool { return slices.Contains(c.Owns, partition) }

func (c *claim) warm(partition int) bool { return slices.Contains(c.Warm, partition) }

// shares reports whether the member may own partitions beside another one.
func (c *claim) shares(other *claim) bool { return c.Key != "" && c.Key == other.Key }

// kinship is the relation of a claim to this process's own.
type kinship uint8

const (
	ownClaim     kinship = iota // this process's, under whatever member id
	sharingClaim                // a node's that may own partitions beside this one
	twinClaim                   // of this node, by another process: one that died, or one on a copy of the directory
	foreignClaim                // a node's that shares nothing
)

func (c *claim) to(own *claim) kinship {
	switch {
	case c.ID == own.ID && c.SinceMs == own.SinceMs:
		return ownClaim
	case !c.shares(own):
		return foreignClaim
	case c.ID == own.ID:
		return twinClaim
	}
	return sharingClaim
}
