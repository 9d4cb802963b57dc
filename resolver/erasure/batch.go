package erasure

import (
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Batch is what is to leave history, the log and the checkpoints at once. It stays as it is
// while records are applied.
type Batch struct {
	Account uint64
	// Erasures counts the persons of the batch. Where there is none, only the log is to be
	// rid of what was refused because of erased persons.
	Erasures int
	// Query is what history is asked to erase, once it has the rows below its cut; it is
	// empty where there are no erasures.
	Query   query.EraseQuery
	tasks   []*Task
	refused refusedRange
}

// LogRange is where in the log the batch is to be redacted: from is the first offset and
// end is behind the last one. start is the first offset that the log has.
func (b *Batch) LogRange(start int64) (from, end int64) {
	from, end = start, b.refused.UpTo
	if b.Erasures == 0 {
		from = max(start, b.refused.From)
	}
	for _, t := range b.tasks {
		end = max(end, t.UpTo)
	}
	return from, end
}

// Done is the argument of [CommandDone], which takes the batch's tasks off the state once
// all files are rid of them.
func (b *Batch) Done() Done { return Done{b.Query.Cut.UpTo, b.refused.UpTo} }

// maxOrdinals bounds what history is asked to erase at once.
const maxOrdinals = 1000

// Next are the oldest erasures that history has not confirmed, and what was refused because
// of erased persons where the log can be redacted.
func (s *State) Next(partition int, redacts bool) (b Batch, ok bool) {
	b.Account = s.account
	for _, t := range s.tasks {
		if b.Erasures > 0 && len(b.Query.Ordinals)+len(t.Ordinals) > maxOrdinals {
			break
		}
		b.Erasures++
		b.Query.Cut, b.Query.Account = query.Cut{Partition: partition, UpTo: t.UpTo}, s.account
		b.Query.Ordinals = append(b.Query.Ordinals, t.Ordinals...)
		b.tasks = append(b.tasks, t)
	}
	if b.Erasures > 0 || s.refused.UpTo > 0 && redacts {
		b.refused = s.refused
		return b, true
	}
	return Batch{}, false
}

// Persons are those whom the batch erases: the ordinals that they had, and for each of
// their identifiers the offset up to which it was theirs.
func (s *State) Persons(b *Batch) (ordinals []uint32, below map[identifier.Hash]int64, err error) {
	below = map[identifier.Hash]int64{}
	for _, t := range b.tasks {
		ordinals = append(ordinals, t.Ordinals...)
		for _, text := range t.Hashes {
			h, err := identifier.ParseHash(text)
			if err != nil {
				return nil, nil, err
			}
			below[h] = max(below[h], t.UpTo)
		}
		if len(t.Hashes) == 0 { // of before tasks had hashes
			for h, x := range s.marks {
				if x.Kind != identifier.Anonymous.String() { // none was known then, and they may be others' by now
					below[h] = max(below[h], t.UpTo)
				}
			}
		}
	}
	return ordinals, below, nil
}

// Offsets are the marks of now, each with the offset of the record that made it.
func (s *State) Offsets() map[identifier.Hash]int64 {
	out := make(map[identifier.Hash]int64, len(s.marks))
	for h, x := range s.marks {
		out[h] = x.At
	}
	return out
}
