package node

import (
	"errors"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

const remedySkip = `To pass over it, see "A record that cannot be applied" in docs/operations/failures.md`

// remedy is what to do about a record that cannot be applied.
func remedy(err error) string {
	if errors.Is(err, resolver.ErrNewer) {
		return statefiles.RemedyNewer
	}
	return remedySkip
}
