package duckdb

import "context"

// lock is a mutex that a caller need not wait for longer than its context allows.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock() { l <- struct{}{} }

func (l lock) Unlock() { <-l }

// TryLock locks if that needs no waiting, and reports whether it did.
func (l lock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// LockFor is Lock, or the error of ctx if that ends before.
func (l lock) LockFor(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
