// Package fake is the world in which tests run machines and nodes: a history in memory
// ([History]), disks that crash, fill up or are damaged ([CrashFS], [ScarceFS],
// [DamageFile]), a source of ids that repeats itself ([Random]), and random events and
// definitions of a small world. It knows neither.
package fake
