// Package password turns passwords into argon2id hashes and checks them.
//
// A hash is text in the usual form
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<sum>
//
// so that parameters may rise later: a hash says itself how it is checked.
// A computation takes [Params.MemoryKiB] of memory; how many run at once is the
// caller's to bound.
package password
