package resolver

import "context"

type servedNode struct{ *Node }

func (s servedNode) Rebuilding() bool {
	for _, p := range s.Stats() {
		if p.HistoryRebuilding {
			return true
		}
	}
	return false
}

func init() {
	Serve = func(ctx context.Context, o ServeOptions) (Served, error) {
		n, err := Open(ctx, Options{FS: o.FS, Dir: o.Dir, Log: o.Log, History: o.History, Now: o.Now, Rand: o.Rand,
			CheckpointInterval: o.CheckpointInterval, GenerationBytes: o.GenerationBytes, CacheBytes: o.CacheBytes, Feed: o.Feed})
		if err != nil {
			return nil, err
		}
		return servedNode{n}, nil
	}
}
