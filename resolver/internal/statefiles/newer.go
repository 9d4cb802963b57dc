package statefiles

import "errors"

// ErrNewer means a state or record was made by a newer version of Muster.
var ErrNewer = errors.New("made by a newer version of muster")

// RemedyNewer is what to do about it.
const RemedyNewer = `Install that version on this node, too; what it has written cannot be undone but by a restore. See "Upgrades" in docs/operations/cluster.md`
