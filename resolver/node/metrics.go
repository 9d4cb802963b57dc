package node

import "github.com/musterhq/muster/resolver"

// Stats are the numbers of one partition, for metrics.
type Stats struct {
	Partition int
	// Applied is the offset of the next record to apply, Backlog how many
	// records this node appended are not applied yet.
	Applied, Backlog int64
	// ApplyNanoseconds is the time spent applying, in all.
	ApplyNanoseconds int64
	// DiskFull is set while the partition's files find no space.
	DiskFull bool
	// Repairs counts damaged checkpoints that were passed over, and rebuildings of
	// history that were begun.
	Repairs int64
	CheckpointStats
	SharingStats
	HistoryStats
	resolver.MachineStats
}

// CheckpointStats are the numbers of a partition's checkpoints.
type CheckpointStats struct {
	// Checkpoints is how many were written, CheckpointNanoseconds how long
	// that took in all, FreezeMaxNanoseconds the longest time for which Apply
	// waited for one.
	Checkpoints, CheckpointNanoseconds, FreezeMaxNanoseconds int64
	// LastCheckpoint is the offset of the newest checkpoint.
	LastCheckpoint int64
}

func (c *checkpointing) stats() CheckpointStats {
	return CheckpointStats{
		Checkpoints: c.written.Load(), CheckpointNanoseconds: c.writtenNs.Load(),
		FreezeMaxNanoseconds: c.freezeMaxNs.Load(), LastCheckpoint: c.last.Load(),
	}
}

// HistoryStats say how far history is.
type HistoryStats struct {
	// HistoryPosition is the offset history has stored up to; Applied minus
	// it is history's lag in records.
	HistoryPosition int64
	// WaitingRows, WaitingBytes and SpoolBytes are what history lacks: rows
	// not sealed yet, bytes in memory (of all rows), bytes in spool files.
	WaitingRows, WaitingBytes, SpoolBytes int64
	// HistoryFailing is true while history refuses rows, HistoryRebuilding while rows
	// that it lost are rebuilt from the log.
	HistoryFailing, HistoryRebuilding bool
}

func (p *partition) historyStats() HistoryStats {
	at := p.feed.Status()
	return HistoryStats{
		HistoryPosition: at.Stored, WaitingRows: at.Rows, WaitingBytes: at.Bytes, SpoolBytes: at.SpoolBytes,
		HistoryFailing: at.Failing, HistoryRebuilding: p.history.rebuilding.Load(),
	}
}

// Stats returns the numbers of the partitions served here. Those that count since
// the start count from zero when a partition is taken.
func (n *Node) Stats() []Stats {
	out := make([]Stats, 0, len(n.partitions))
	for p := range n.here() {
		s := Stats{
			Partition: p.id, Applied: p.position.applied.Load(), ApplyNanoseconds: p.position.applyNs.Load(),
			DiskFull: p.ckpt.Disk.Full(), Repairs: p.history.repairs.Load(),
			CheckpointStats: p.checkpoint.stats(), SharingStats: p.sharing.Stats(),
			HistoryStats: p.historyStats(), MachineStats: *p.published.stats.Load(),
		}
		s.Backlog = p.requests.backlog(s.Applied)
		out = append(out, s)
	}
	return out
}
