package statefiles

import "errors"

// ErrNewer means a state or record was made by a newer version of Muster.
var ErrNewer = errors.New("made by a newer version of muster")

// RemedyNewer is what to do about it.
const RemedyNewer = `Install that version on this node, too; what it has written cannot be undone but by a restore. See "Upgrades" in docs/operations/cluster.md`

// ErrOlder means that a state was made by a version of Muster that is too old to be read.
var ErrOlder = errors.New("made by a version of muster before 0.1.0")

// RemedyOlder is what to do about it. The state is whole, so it is neither set aside nor
// passed over.
const RemedyOlder = "Start it once with version 0.1.0, which brings it up to date, or move the state away if the log is whole: it is then rebuilt from the log"
