package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The index of profiles leads from the beginning of an identifier or a name to the
// profiles that have it, in order of texts. It follows from the documents alone: where
// one changes, so does the index, in the same record. The state's hash compares both, see
// [Sum]. A checkpoint says in its manifest that it has the index; where one does not, it is
// made from the documents when the state is loaded.

// IndexVersion is the version of what is in the index. A state with another one,
// or none, gets its index again.
const IndexVersion = 1

// The texts by which a profile is found. Bytes are on disk, and their order is the one
// in which a search lists what it finds.
const (
	indexEmail      = '0' + byte(identifier.Email)
	indexExternalID = '0' + byte(identifier.ExternalID)
	indexPhone      = '0' + byte(identifier.Phone)
	indexName       = 'n' // first name, a space, last name
	indexLastName   = 'o' // where there is a first name, too
)

// maxIndexText bounds a text in the index, in bytes: what is longer is cut off there.
const maxIndexText = 64

// appendSearched appends the form in which names and identifiers are searched: without
// white space around, lower-cased, of a phone its digits. What is masked has none.
func appendSearched(dst []byte, field byte, text []byte) []byte {
	switch {
	case len(text) > 0 && text[0] == identifier.MaskByte:
		return dst
	case field != indexPhone:
		return identity.AppendNormalEmail(dst, text)
	}
	n := len(dst)
	dst = identity.AppendNormalPhone(dst, text)
	if len(dst) > n && dst[n] == '+' {
		dst = slices.Delete(dst, n, n+1)
	}
	return dst
}

// cutText is the part of a searched text that the index has.
func cutText(text []byte) []byte { return clip.Text(text, maxIndexText) }

// searched calls fn with the texts by which the profile of a document is found, fields in their order.
// A text is valid during the call.
func searched(d *profile.Document, buf *[]byte, fn func(field byte, text []byte)) {
	b := (*buf)[:0]
	for k := range identifier.Identifying {
		for _, id := range d.Identifiers {
			if id.Kind == k {
				field := '0' + byte(k)
				if b = appendSearched(b[:0], field, id.Value); len(b) > 0 {
					fn(field, b)
				}
			}
		}
	}
	*buf = b
	searchedNames(d.FirstName, d.LastName, buf, fn)
}

// searchedNames is searched for names alone.
func searchedNames(firstName, lastName []byte, buf *[]byte, fn func(field byte, text []byte)) {
	b := appendSearched((*buf)[:0], indexName, firstName)
	first := len(b)
	if first > 0 {
		b = append(b, ' ')
	}
	n := len(b)
	if b = appendSearched(b, indexName, lastName); len(b) == n {
		b = b[:first]
	}
	if len(b) > 0 {
		fn(indexName, b)
	}
	if first > 0 && len(b) > n {
		fn(indexLastName, b[n:])
	}
	*buf = b
}

// indexPrefix is what the keys of a field begin with.
func indexPrefix(dst []byte, account uint64, field byte) []byte {
	return append(state.AccountKey(dst, state.TableProfileIndex, account), field)
}

// indexKey is the key of a text, which has no NUL, and a profile.
func indexKey(dst []byte, account uint64, field byte, text []byte, ordinal uint32) []byte {
	dst = append(indexPrefix(dst, account, field), cutText(text)...)
	return binary.BigEndian.AppendUint32(append(dst, 0), ordinal)
}

// splitIndexKey is the text and the profile of a key.
func splitIndexKey(key []byte) (text []byte, ordinal uint32) {
	n := len(key) - 5
	return key[state.KeyHead+1 : n], binary.BigEndian.Uint32(key[n+1:])
}

// indexKeys are the keys of a profile.
type indexKeys struct {
	all  []byte
	ends []int
	buf  []byte
	doc  profile.Document
}

func (k *indexKeys) at(i int) []byte {
	from := 0
	if i > 0 {
		from = k.ends[i-1]
	}
	return k.all[from:k.ends[i]]
}

func (k *indexKeys) has(key []byte) bool {
	for i := range k.ends {
		if bytes.Equal(k.at(i), key) {
			return true
		}
	}
	return false
}

// set makes them the keys of an encoded document, none of nil.
func (k *indexKeys) set(account uint64, ordinal uint32, block []byte) error {
	k.all, k.ends = k.all[:0], k.ends[:0]
	if block == nil {
		return nil
	}
	if err := k.doc.DecodeHead(block); err != nil {
		return err
	}
	searched(&k.doc, &k.buf, func(field byte, text []byte) { k.add(account, ordinal, field, text) })
	return nil
}

// setNames makes them the keys of the names in an encoded document.
func (k *indexKeys) setNames(account uint64, ordinal uint32, block []byte) {
	k.all, k.ends = k.all[:0], k.ends[:0]
	first, last := profile.Names(block)
	searchedNames(first, last, &k.buf, func(field byte, text []byte) { k.add(account, ordinal, field, text) })
}

func (k *indexKeys) add(account uint64, ordinal uint32, field byte, text []byte) {
	n := len(k.all)
	k.all = indexKey(k.all, account, field, text, ordinal)
	if key := k.all[n:]; k.has(key) {
		k.all = k.all[:n] // two texts that are alike up to where they are cut off
		return
	}
	k.ends = append(k.ends, len(k.all))
}

// Index keeps the index of profiles in the store in step with their documents.
type Index struct {
	store   *state.Store
	was, is indexKeys // of a profile, before and after a change
}

// NewIndex returns the index of the profiles in the store.
func NewIndex(store *state.Store) *Index { return &Index{store: store} }

// Update brings the index from a profile's old document to its new one; nil is none. same
// says what they have in common, see [profile.Compare].
func (x *Index) Update(account uint64, ordinal uint32, old, now []byte, same profile.Likeness) {
	switch {
	case same.Names:
		return
	case same.Identifiers:
		x.was.setNames(account, ordinal, old)
		x.is.setNames(account, ordinal, now)
	default:
		// Documents in memory decode.
		if err := errors.Join(x.was.set(account, ordinal, old), x.is.set(account, ordinal, now)); err != nil {
			panic(err)
		}
	}
	for i := range x.was.ends {
		if key := x.was.at(i); !x.is.has(key) {
			x.store.PutIndex(key, true)
		}
	}
	for i := range x.is.ends {
		if key := x.is.at(i); !x.was.has(key) {
			x.store.PutIndex(key, false)
		}
	}
}

// Before copies the keys that the profile of the last update, which removed it, had before.
func (x *Index) Before() []string { return x.was.list() }

// list copies the keys.
func (k *indexKeys) list() []string {
	out := make([]string, len(k.ends))
	for i := range out {
		out[i] = string(k.at(i))
	}
	return out
}
