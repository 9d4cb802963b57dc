// Package segmenttest makes up definitions, profiles and events for tests that
// compare evaluators of segments (S1). Everything is drawn from one seed, so
// that a failure is repeated by its seed.
//
// The vocabulary is small, so that conditions meet the values they ask for, and
// adversarial: ties at the seventh decimal, magnitudes around 10¹², negative
// zero, integers beyond 2⁵³, texts that look like numbers, keys that look like
// syntax, times at the very edge of the windows. Definitions are written the way
// people write them: with fields in any order, defaults spelled out or not, one
// number in several forms.
package segmenttest
