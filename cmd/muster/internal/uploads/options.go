package uploads

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/musterhq/muster/resolver/node"
)

// Options configure [Uploads]. Dir, Node, Now, Rand and Bytes are required.
type Options struct {
	// Dir is the directory of the files; it is made when there is none.
	Dir  string
	Node *node.Node
	// OwnedElsewhere reports whether another node owns a partition; nil where there is no
	// other node.
	OwnedElsewhere func(partition int) bool
	// Now is the wall clock, Rand the source of ids. Both must be safe for concurrent use.
	Now  func() time.Time
	Rand io.Reader
	// Bytes bounds all stored files together; one may have a quarter of it.
	Bytes int64
	// Logger takes faults of the service itself; nil is silent.
	Logger *slog.Logger
}

const (
	// maxUnfinished bounds the uploads of an account that have not ended, maxEnded those
	// that have: older ones are forgotten.
	maxUnfinished = 20
	maxEnded      = 200
	// unstartedTime is how long a file is kept whose import is not started.
	unstartedTime = 24 * time.Hour
	// awayTime is how long files are kept of an account that another node owns. awayPerLook
	// bounds what one look at the owners writes and removes.
	awayTime    = 24 * time.Hour
	awayPerLook = 100
	// showRows is how many rows a preview shows, showRefusals how many refused ones an
	// answer names, checkRows how many rows a preview judges.
	showRows     = 10
	showRefusals = 20
	checkRows    = 10_000
	// maxColumns bounds the columns of a file.
	maxColumns = 1000
	// lookEvery is the pause between looks for erased people and files to forget.
	lookEvery = time.Second
)

func (o *Options) validate() error {
	switch {
	case o.Dir == "" || o.Node == nil || o.Now == nil || o.Rand == nil:
		return errors.New("uploads: Options.Dir, Node, Now and Rand must be set")
	case o.Bytes <= 0:
		return errors.New("uploads: Options.Bytes must be positive")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
