// Package baseline holds the servers Muster is measured against.
//
// They run on the same HTTP library under the same load and do a known part of
// the work and nothing else: [Read] takes the body and answers; [Parse] also
// parses it and visits every field of every event. Nothing is stored. What
// Muster costs beyond them is what it adds: validation, durability, identity,
// history.
package baseline
