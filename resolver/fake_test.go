package resolver

import (
	"math/rand/v2"

	"github.com/musterhq/muster/resolver/internal/fake"
)

// What tests of machines and of nodes have in common is in package fake.
type (
	modelHistory = fake.History
	seededReader = fake.Random
	crashFS      = fake.CrashFS
	scarceFS     = fake.ScarceFS
	wholeLog     = fake.WholeLog
)

var (
	errModel         = fake.ErrHistory
	newScarceFS      = fake.NewScarceFS
	filesBelow       = fake.FilesBelow
	damageKinds      = fake.DamageKinds
	damageFile       = fake.DamageFile
	overwrite        = fake.Overwrite
	appendEvents     = fake.AppendEvents
	randomEvent      = fake.RandomEvent
	randomDefinition = fake.RandomDefinition
	ev               = fake.Event
)

type modelRow = fake.Row
type damageKind = fake.DamageKind

func pick[T any](rng *rand.Rand, list ...T) T { return fake.Pick(rng, list...) }
