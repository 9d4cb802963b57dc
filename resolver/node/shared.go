package node

import "github.com/musterhq/muster/resolver/node/internal/sharing"

// SharedCheckpoints is where nodes leave checkpoints for each other. Package
// cluster/checkpoint is it.
type SharedCheckpoints = sharing.Storage

// ErrForeignCheckpoints means that shared checkpoints are those of another log.
var ErrForeignCheckpoints = sharing.ErrForeign

// SharingStats say how far a partition's checkpoints are uploaded.
type SharingStats = sharing.Stats
