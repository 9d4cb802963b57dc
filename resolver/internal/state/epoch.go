package state

// Epoch is the time for which a node acts for a partition.
type Epoch struct {
	// Number is the offset of its record plus one: the larger the later, 0 for none.
	Number uint64 `json:"number"`
	// Node is the id of the node that acts, Address where other nodes reach it.
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
	// Session is the id of its record, in hexadecimal.
	Session string `json:"session"`
	// ApplyVersion is that of the rules of the node's build.
	ApplyVersion int `json:"apply_version"`
	// BeganMs is the log time of its record.
	BeganMs int64 `json:"began_ms"`
}
