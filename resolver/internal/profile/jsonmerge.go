package profile

import "errors"

// errJSON means stored text is not canonical JSON; records are checksummed, so
// it is a fault of a writer, never of a client.
var errJSON = errors.New("attributes are not canonical JSON")

// Member is one "key":value of an object in canonical text, as written.
type Member struct {
	Key   []byte // with its quotes
	Value []byte
}

// MergeMode says which of two values of a key stays.
type MergeMode uint8

const (
	// Overwrite: the source's value replaces the target's; null removes.
	Overwrite MergeMode = iota
	// Fill: the source's value is taken only where the target has none;
	// null changes nothing.
	Fill
)

// JSONMerger merges canonical JSON objects key by key. It keeps scratch memory
// between calls and is used by one goroutine.
type JSONMerger struct {
	stack [][]Member
	depth int
	// results are those since Reset, one after the other.
	results []byte
}

// Reset gives up the results of earlier merges.
func (j *JSONMerger) Reset() { j.results = j.results[:0] }

// Merge merges src into dst, both canonical objects or empty. Where nothing
// changes it returns dst and false and allocates nothing. The order of keys is
// that of dst, then new ones in the order of src. What it returns is valid until
// Reset.
func (j *JSONMerger) Merge(dst, src []byte, mode MergeMode) (out []byte, changed bool, err error) {
	j.depth = 0
	if len(src) == 0 {
		return dst, false, nil
	}
	if holds(dst, src) {
		return dst, false, nil
	}
	begin := len(j.results)
	if out, err = j.appendMerged(j.results, dst, src, mode); err != nil {
		return nil, false, err
	}
	out, changed = j.result(begin, out, dst)
	return out, changed, nil
}

// result keeps what was appended from begin on as the result of a merge into dst, or gives
// dst back where it is the same. An object without members is nil.
func (j *JSONMerger) result(begin int, out, dst []byte) (_ []byte, changed bool) {
	j.results = out
	out = out[begin:len(out):len(out)]
	if string(out) == "{}" {
		out = nil
	}
	if string(out) == string(dst) {
		j.results = j.results[:begin]
		return dst, false
	}
	return out, true
}

// holds reports whether all members of src, none of them null, stand in dst as they
// are, in the same order, which is what most events say of a profile. Then
// merging changes nothing; false means that it must be found out.
//
// It rests on dst holding no null but inside of arrays, as nothing does that
// merge made.
func holds(dst, src []byte) bool {
	if len(dst) < 2 || len(src) < 3 || dst[0] != '{' || src[0] != '{' {
		return false
	}
	d := 1
	for s := 1; ; {
		k := skipString(src, s)
		if k < 0 || k+1 >= len(src) || src[k] != ':' || src[k+1] == 'n' {
			return false
		}
		end := skipValue(src, k+1)
		if end < 0 || end >= len(src) || end == k+1 {
			return false
		}
		for member := src[s:end]; !startsWithMember(dst[d:], member); {
			at := skipString(dst, d)
			if at < 0 || at >= len(dst) {
				return false
			}
			if d = skipValue(dst, at+1); d < 0 || d >= len(dst) || dst[d] != ',' {
				return false
			}
			d++
		}
		d += end - s // at the comma or brace behind the member
		switch src[end] {
		case '}':
			return end == len(src)-1
		case ',':
			s = end + 1
		default:
			return false
		}
		if dst[d] != ',' {
			return false
		}
		d++
	}
}

// startsWithMember reports whether the list of members begins with this one.
func startsWithMember(list, member []byte) bool {
	return len(list) > len(member) && string(list[:len(member)]) == string(member) && (list[len(member)] == ',' || list[len(member)] == '}')
}

// maxMergeDepth bounds the recursion; ingest refuses objects far less deep.
const maxMergeDepth = 128

// members lists an object's members in scratch memory of this depth.
func (j *JSONMerger) members(obj []byte) ([]Member, error) {
	if j.depth > 2*maxMergeDepth {
		j.depth++
		return nil, errJSON
	}
	if j.depth == len(j.stack) {
		j.stack = append(j.stack, nil)
	}
	list := j.stack[j.depth][:0]
	err := EachMember(obj, func(m Member) { list = append(list, m) })
	j.stack[j.depth] = list
	j.depth++
	return list, err
}

func (j *JSONMerger) release() { j.depth-- }

// fewLookups is up to how many look-ups in a list are done by scanning it.
const fewLookups = 8

// finder finds members by key: by scanning for a few look-ups, by an index for
// many, so that merging takes time in proportion to the objects, whatever
// their keys.
type finder struct {
	list  []Member
	index map[string]int
}

func newFinder(list []Member, lookups int) finder {
	f := finder{list: list}
	if lookups > fewLookups && len(list) > fewLookups {
		f.index = make(map[string]int, len(list))
		for i := range list {
			f.index[string(list[i].Key)] = i
		}
	}
	return f
}

// find returns the place of the key in the list, or -1.
func (f *finder) find(key []byte) int {
	if f.index != nil {
		if i, ok := f.index[string(key)]; ok {
			return i
		}
		return -1
	}
	for i := range f.list {
		if string(f.list[i].Key) == string(key) {
			return i
		}
	}
	return -1
}

func (j *JSONMerger) appendMerged(out, dst, src []byte, mode MergeMode) ([]byte, error) {
	have, err := j.members(dst)
	defer j.release()
	if err != nil {
		return nil, err
	}
	add, err := j.members(src)
	defer j.release()
	if err != nil {
		return nil, err
	}
	inHave, inAdd := newFinder(have, len(add)), newFinder(add, len(have))
	out = append(out, '{')
	first := true
	put := func(key []byte) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(out, key...), ':')
	}
	for _, h := range have {
		i := inAdd.find(h.Key)
		if i < 0 {
			put(h.Key)
			out = append(out, h.Value...)
			continue
		}
		v := add[i].Value
		switch {
		case v[0] == 'n' && mode == Overwrite:
			continue
		case v[0] == '{' && h.Value[0] == '{':
			put(h.Key)
			if out, err = j.appendMerged(out, h.Value, v, mode); err != nil {
				return nil, err
			}
		case mode == Fill:
			put(h.Key)
			out = append(out, h.Value...)
		default:
			put(h.Key)
			if out, err = j.appendNew(out, v); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range add {
		if m.Value[0] == 'n' || inHave.find(m.Key) >= 0 {
			continue
		}
		put(m.Key)
		if out, err = j.appendNew(out, m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendNew writes a value that had none before: nulls inside its objects
// remove, so they are left out.
func (j *JSONMerger) appendNew(out, v []byte) ([]byte, error) {
	if v[0] != '{' {
		return append(out, v...), nil
	}
	return j.appendMerged(out, nil, v, Overwrite)
}

// EachMember calls fn for each member of a canonical object; an empty slice is
// an empty object. It checks only what it needs to stay within bounds.
func EachMember(obj []byte, fn func(Member)) error {
	if len(obj) == 0 {
		return nil
	}
	if obj[0] != '{' || len(obj) < 2 {
		return errJSON
	}
	i := 1
	if obj[i] == '}' {
		return nil
	}
	for {
		k := skipString(obj, i)
		if k < 0 || k >= len(obj) || obj[k] != ':' {
			return errJSON
		}
		v := skipValue(obj, k+1)
		if v < 0 || v >= len(obj) || v == k+1 {
			return errJSON
		}
		fn(Member{obj[i:k], obj[k+1 : v]})
		switch obj[v] {
		case ',':
			i = v + 1
		case '}':
			return nil
		default:
			return errJSON
		}
	}
}

// skipString returns the position behind the string that starts at i, or -1.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// skipValue returns the position behind the value that starts at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				if i = skipString(b, i) - 1; i < 0 {
					return -1
				}
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == ',' || c == '}' || c == ']' {
			return i
		}
	}
	return i
}

// Choose merges src into dst member by member, both canonical objects or empty: what choose
// answers true for is as src has it, or has it not, and all else as dst has it. A null of
// src is a member that it has not; has and other say which of the objects have the key, and
// said whether src names it, if only as null. An object is one value: nothing within it is
// merged. The results are as those of [JSONMerger.Merge].
func (j *JSONMerger) Choose(dst, src []byte, choose func(key []byte, has, other, said bool) bool) (out []byte, changed bool, err error) {
	j.depth = 0
	have, err := j.members(dst)
	defer j.release()
	if err != nil {
		return nil, false, err
	}
	add, err := j.members(src)
	defer j.release()
	if err != nil {
		return nil, false, err
	}
	inHave, inAdd := newFinder(have, len(add)), newFinder(add, len(have))
	begin := len(j.results)
	out = append(j.results, '{')
	put := func(key []byte) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(out, key...), ':')
	}
	for _, h := range have {
		i := inAdd.find(h.Key)
		other := i >= 0 && add[i].Value[0] != 'n'
		switch {
		case !choose(h.Key, true, other, i >= 0):
			put(h.Key)
			out = append(out, h.Value...)
		case other:
			put(h.Key)
			if out, err = j.appendNew(out, add[i].Value); err != nil {
				return nil, false, err
			}
		}
	}
	for _, m := range add {
		if inHave.find(m.Key) >= 0 {
			continue
		}
		if other := m.Value[0] != 'n'; choose(m.Key, false, other, true) && other {
			put(m.Key)
			if out, err = j.appendNew(out, m.Value); err != nil {
				return nil, false, err
			}
		}
	}
	out = append(out, '}')
	out, changed = j.result(begin, out, dst)
	return out, changed, nil
}
