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
	wholeLog     = fake.WholeLog
)

var (
	newScarceFS      = fake.NewScarceFS
	filesBelow       = fake.FilesBelow
	damageKinds      = fake.DamageKinds
	damageFile       = fake.DamageFile
	appendEvents     = fake.AppendEvents
	randomEvent      = fake.RandomEvent
	randomDefinition = fake.RandomDefinition
	ev               = fake.Event
)

func pick[T any](rng *rand.Rand, list ...T) T { return fake.Pick(rng, list...) }
