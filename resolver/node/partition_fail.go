package node

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// fail stops the partition for good: nothing is applied or acknowledged any
// more, and no checkpoint is written.
func (p *partition) fail(err error) {
	if p.failed.set(err) {
		p.log.Error("stopped", "error", err)
		p.node.failed.set(err)
	}
}

// ErrStateDamaged means that files of the state were found damaged while it was
// used. The next start rebuilds it from an older checkpoint or from the log.
var ErrStateDamaged = errors.New("files of the state are damaged; a start rebuilds them from the log")

// damage reports whether an error of the store says that a file's content is not what was
// written, that a file is gone, or that it is something else than a file.
func damage(err error) bool {
	return corrupt(err) || statefiles.IsNotExist(err) || statefiles.IsMisplaced(err)
}

// corrupt reports whether an error of the store says that a file's content is not what was
// written.
func corrupt(err error) bool {
	return errors.Is(err, statefiles.ErrDamaged) || pebble.IsCorruptionError(err)
}

// failDamaged stops the partition because files of its state are damaged.
func (p *partition) failDamaged(err error) { p.fail(fmt.Errorf("%w: %w", ErrStateDamaged, err)) }

// failRecord stops the partition because a record cannot be applied.
func (p *partition) failRecord(offset int64, err error) {
	if damage(err) {
		p.failDamaged(err)
		return
	}
	p.fail(fmt.Errorf("record %d of partition %d cannot be applied: %w. %s", offset, p.id, err, remedy(err)))
}

// failCheckpoint stops the partition because no checkpoint could be written.
func (p *partition) failCheckpoint(err error) {
	err = fmt.Errorf("checkpoint: %w", err)
	if damage(err) {
		p.failDamaged(err)
		return
	}
	p.fail(err)
}
