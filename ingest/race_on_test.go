//go:build race

package ingest

// raceDetector says that the race detector is on. sync.Pool then drops a
// quarter of what is put back, so allocations of pooled code cannot be counted.
const raceDetector = true
