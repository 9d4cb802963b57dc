// Package blobtree keeps directory trees in object storage, such as S3 or a
// directory that several machines mount.
//
// A [Set] is a place for versions of one tree. A version is a manifest, written
// last, that names the tree's files and the objects that hold their content:
//
//	PREFIX/manifests/<name>.json            a version; names sort by age
//	PREFIX/files/<sha256>-<16 hex digits>   content: a file, or a piece of one
//	PREFIX/clock                            tells the storage's time
//
// Content is found by its hash, so a version sends what no earlier one had.
// docs/formats.md describes the bytes.
//
// # Several writers
//
// Nothing locks a set: two processes that each think they are alone may put
// versions and remove garbage at once. These hold all the same:
//
//	B1  A manifest never names an object that is missing.
//	B2  What is read back is what was put, or an error: every byte is checked.
//	B3  A version that was not finished is not there.
//	B4  What no manifest names is removed some time after, and nothing else is.
//
// B1 is what makes removing difficult: one process may be about to name an object
// just when another finds no manifest naming it. The rule is that an object has one
// life. It is stored once under a name that is never used again; it may be
// named by new manifests for half of [Options.Keep] after that; and it is
// removed when no manifest names it and all of Keep has passed. What is put
// again later is stored again, as another object. So an old object that no manifest
// names will never be named again, provided that no Put takes longer than the other
// half of Keep: Put ends before. All ages are told by the storage's own clock.
//
// With Keep zero nothing is ever removed, and objects may be named at any age;
// one of the wrong size is sent again under its name. [Set.Reread] finds those whose
// bytes are wrong.
package blobtree
