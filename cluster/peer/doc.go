// Package peer has the calls between the nodes of a cluster: a node forwards a
// request for an account that it does not own to the owner.
//
// # What goes between nodes
//
// All of it is HTTP on the listener that clients use, below [Prefix]:
//
//	ANY  /cluster/v1/forward/…          a client's request as it came, behind the prefix
//	POST /cluster/v1/command/PARTITION  a record made by another node ([Peers.Command])
//	POST /cluster/v1/ask/NAME           a question that no account answers ([Peers.Ask])
//
// Every call carries, in the header Muster-Cluster, a stamp and an HMAC-SHA256 under
// the cluster's secret over method, address, stamp, the client's address and the
// SHA-256 of the body; of a client's request that is forwarded the body is left out,
// since the client's own credentials vouch for it. The stamp is the time, the process
// that the call is meant for, the process that makes it, and a number that it gives
// to no other call. A call that is not signed so, or whose time is a minute off,
// gets 404, as a path that does not exist. A call that is meant for another process
// gets 421 with the name of this process: that is how the first call to
// a node learns it. A repeated call gets 503, since the outcome of the first is not
// known. The memory of calls is bounded, as [replays] says; a call that may have been
// forgotten counts as repeated. With Options.TLS
// calls are encrypted; without, the nodes need a network that others cannot read.
//
// # How the owner is found
//
// [Table] says who owns a partition, and is asked again whenever that turns out
// to be wrong. A node that is asked for what it does not own, or has not loaded
// yet, answers 421 and has done nothing. So has one that cannot be connected to.
// Both are tried again, at the owner of that moment, for Options.Wait. Whatever
// may have reached an owner is not repeated: the caller gets an error that says
// that its outcome is not known. Connections to a node that has left the cluster are
// cut, so that no request waits for a node that is frozen.
//
// # Clients' requests
//
// [Router] stands before the handlers. What names an account of a partition that
// is here goes through, which costs finding the account and an atomic load.
// Everything else is forwarded, at most once: the owner runs the handlers or
// answers 421. Bodies are read first, for they may have to be sent again, and
// count in the memory that all requests share; what is wrong with a body is for the
// owner to say, which may refuse the request for another reason. Answers pass through
// as they come, streams among them.
package peer
