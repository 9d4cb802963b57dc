// Package victim is a server that a bench kills again and again: with SIGKILL at
// random moments, also while it starts, and started again on the same data each
// time. Clients are held back by a gate while there is none.
package victim
