package node

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node/live"
	"github.com/musterhq/muster/resolver/sources"
)

// Watch starts watching the events of an account; ok is false when too many watch already.
// The watcher of an account that is not served here has ended.
func (n *Node) Watch(account uint64) (w *live.Watcher, ok bool) {
	return n.live.Watch(account, func() error {
		_, err := n.owner(account)
		return err
	})
}

// WatchTransitions starts watching a segment; ok is false when too many watch
// already. The watcher of an account that is not served here has ended.
func (n *Node) WatchTransitions(account uint64, segment string) (w *live.TransitionWatcher, ok bool) {
	p, err := n.owner(account)
	if err != nil {
		return live.NotServed(err), true
	}
	// Nothing is applied meanwhile: what is not received is before the next record.
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return live.NotServed(notOwner(p.id)), true
	}
	return n.transitions.Watch(account, segment, p.mu.m.Next(), func() error {
		if _, err := n.owner(account); err != nil {
			return notOwner(p.id)
		}
		return nil
	})
}

// endWatchers ends the watchers of a partition that was released.
func (n *Node) endWatchers(partition int) {
	gone := func(account uint64) bool { return n.PartitionOf(account) == partition }
	n.live.End(gone, notOwner(partition))
	n.transitions.End(gone, notOwner(partition))
}

// NoteRefused shows an event that was refused to those who watch the account, and keeps
// it in memory for those who come. raw is the event, or the whole body where that could
// not be read; it is not used afterwards.
func (n *Node) NoteRefused(account uint64, raw []byte, reason string) {
	n.live.Refuse(account, live.NewRefused(n.opts.Now().UnixMilli(), raw, reason))
}

// NoteRefusedCall is NoteRefused for a call of a source; call is "" where it is not known.
func (n *Node) NoteRefusedCall(source *sources.Access, call string, raw []byte, reason string) {
	e := live.NewRefused(n.opts.Now().UnixMilli(), raw, reason)
	e.SourceID, e.SourceName, e.Call = source.SourceID, source.Name, call
	n.live.Refuse(source.Account, e)
}

// Refused lists the newest refused events of an account, the oldest first.
func (n *Node) Refused(account uint64) []live.Refused { return n.live.Refused(account) }

// erases reports whether a record erases a person.
func erases(env eventlog.Envelope, data []byte) bool {
	if env.Kind != eventlog.KindCommand {
		return false
	}
	name, _, err := eventlog.DecodeCommand(data[eventlog.EnvelopeSize:])
	return err == nil && name == resolver.CommandContactErase
}
