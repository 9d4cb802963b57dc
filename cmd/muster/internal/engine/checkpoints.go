package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cluster/checkpoint"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/resolver/node"
)

// openBucket opens the storage that checkpoints are shared in, nil for none.
func openBucket(ctx context.Context, o Options) (blobtree.Bucket, error) {
	if o.Checkpoints == "" {
		return nil, nil
	}
	bucket, err := blobtree.OpenBucket(ctx, o.Checkpoints)
	if err != nil {
		return nil, fmt.Errorf("--checkpoints: %w", err)
	}
	return bucket, nil
}

func closeBucket(b blobtree.Bucket) error {
	if b == nil {
		return nil
	}
	return b.Close()
}

// openCheckpoints shares checkpoints in the bucket, which may be nil. The log must be
// open.
func (e *Engine) openCheckpoints(bucket blobtree.Bucket, fs vfs.FS, o Options) (_ node.SharedCheckpoints, err error) {
	if bucket == nil {
		return nil, nil
	}
	e.checkpoints, err = checkpoint.New(checkpoint.Options{
		Bucket: bucket, Place: o.Checkpoints, Log: e.identity, FS: fs, Rand: rand.Reader, Now: time.Now, Logger: o.Logger,
	})
	return e.checkpoints, err
}

func (e *Engine) writeCheckpoints(w io.Writer) {
	if e.checkpoints == nil {
		return
	}
	s := e.checkpoints.Stats()
	metrics.WriteCounterUint64(w, "muster_shared_checkpoint_sent_objects_total", uint64(s.Sent))
	metrics.WriteCounterUint64(w, "muster_shared_checkpoint_sent_bytes_total", uint64(s.SentBytes))
	metrics.WriteCounterUint64(w, "muster_shared_checkpoint_fetched_bytes_total", uint64(s.FetchedBytes))
	metrics.WriteCounterUint64(w, "muster_shared_checkpoint_removed_objects_total", uint64(s.Removed))
}
