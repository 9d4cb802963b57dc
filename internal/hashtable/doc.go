// Package hashtable maps 128-bit keys to values of a few bytes, with one cache
// miss a look-up and without pauses.
//
// # Background
//
// The resolver looks up several keys for each event in maps of millions, so each
// look-up waits for memory. Go's map waits two or three times: for its directory
// and groups, and for the slot. Here a key and its value are in the one line of
// 64 bytes that the key's bits name.
//
// # How data is organised
//
// Keys must be uniformly distributed, as keyed hashes are: their bits are used
// as they are.
//
//   - A bucket is a line: 4 bytes of its own and as many entries, a key and its
//     value each, as fit in 60 bytes: three with 4 bytes of value, two with 12. An
//     entry that finds its bucket full goes to the next one of the page; the
//     bucket counts those that passed it, so that a look-up knows when to stop,
//     and a removal leaves nothing behind.
//   - A page is 512 buckets. It is found by the first bits of the key through the
//     directory. A page that is four fifths full splits in two, by one more bit,
//     which takes some microseconds; that is the longest an insertion waits, but
//     for the directory, which doubles when a page needs more bits than it has:
//     16 bytes for each of n/1000 pages or so.
//   - A table begins with one small page, which doubles until it has all buckets.
//
// Pages are between two and four fifths full. An entry with 4 bytes of value
// takes 27 to 53 bytes, 37 on average, with 12 bytes 40 to 80, and 55 on average.
// There are no pointers but those of the directory. Removed entries make room for
// others of their page; pages are not given back.
package hashtable
