package duckdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
)

// ColumnsSuffix is that of the directory of columns beside the file, see [Options.Columns].
const ColumnsSuffix = ".columns"

const (
	// fileGroups is how many row groups a file of columns has, and how many files of
	// fewer make one.
	fileGroups = 8
	// lagRows is how many rows a question reads into memory itself; beyond, it asks the
	// tables about them.
	lagRows = 25_000
	// idleRows is how many rows may come without a question before files are no longer
	// made.
	idleRows = 10_000_000
	// buildRest divides the time that a file took: so long is the rest behind it.
	buildRest = 2
)

// columnKeeper keeps the columns of the events beside the tables, see package columns:
// in files, made in the background once a question was asked or is expected, and in
// memory what is newer.
type columnKeeper struct {
	set  *columns.Set
	wake chan struct{}
	end  context.CancelFunc
	done chan struct{}

	// building is held while events are read for files. interrupt ends that.
	building sync.Mutex
	mu       sync.Mutex // guards what follows
	// interrupt ends what builds.
	interrupt context.CancelFunc
	// appended are the rows that came since the start, covered about those of them and
	// before that memory has; known says that covered means something.
	appended, covered int64
	known             bool
	unknowns          uint64 // counts what makes known false
	// rowsTo is where the records end, by partition, that may have rows. It means
	// something once the tables were read, so whenever known is true.
	rowsTo map[int]int64
	// askedAt is appended at the last question, −1 before the first.
	askedAt int64
	aliases map[aliasKey]*aliasTable
	merges  uint64 // counts what makes aliases void
}

type aliasKey struct {
	partition int
	account   uint64
}

// aliasTable are all aliases of an account that are stored; newest is the offset of the
// newest, −1 for none. An append that merges makes it void, so it is right at each cut
// above newest.
type aliasTable struct {
	aliases *columns.Aliases
	newest  int64
}

// maxAliasTables bounds how many accounts' aliases are kept.
const maxAliasTables = 64

// openColumns opens the columns and begins to keep them.
func (s *Store) openColumns() error {
	positions := map[int]int64{}
	c, done, err := s.reader(context.Background())
	if err != nil {
		return err
	}
	err = c.query(context.Background(), `SELECT "partition", next_offset FROM progress`, nil, func(ch chunk) error {
		partitions, next := column[uint32](ch, 0), column[int64](ch, 1)
		for i, p := range partitions {
			positions[int(p)] = next[i]
		}
		return nil
	})
	done()
	if err != nil {
		return err
	}
	dir := s.path + ColumnsSuffix
	set, err := columns.Open(dir, s.opts.logName, positions, s.opts.logger())
	if err != nil {
		s.opts.logger().Warn("the columns of history are removed; they are made again from it", "directory", dir, "reason", err)
		if err := columns.Remove(dir); err != nil {
			return err
		}
		if set, err = columns.Open(dir, s.opts.logName, positions, s.opts.logger()); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(context.Background())
	k := &columnKeeper{set: set, wake: make(chan struct{}, 1), end: end, done: make(chan struct{}), askedAt: -1, interrupt: func() {}, rowsTo: map[int]int64{}, aliases: map[aliasKey]*aliasTable{}}
	for p := range positions {
		if len(set.Files(p)) > 0 {
			k.askedAt = 0 // as before the start
		}
	}
	s.columns = k
	go func() {
		defer close(k.done)
		s.keepColumns(ctx)
	}()
	if k.askedAt >= 0 {
		k.signal()
	}
	return nil
}

// closeColumns ends the keeping.
func (s *Store) closeColumns() {
	if k := s.columns; k != nil {
		k.end()
		<-k.done
		k.set.Close()
	}
}

func (k *columnKeeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// ask notes a question.
func (k *columnKeeper) ask() {
	k.mu.Lock()
	first := k.askedAt < 0 || k.appended-k.askedAt > idleRows
	k.askedAt = k.appended
	k.mu.Unlock()
	if first {
		k.signal()
	}
}

// wanted reports whether files are to be made.
func (k *columnKeeper) wanted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.askedAt >= 0 && k.appended-k.askedAt <= idleRows
}

// lag is about how many rows are not in memory, and where the records of a partition end
// that may have rows; known is false before the first count.
func (k *columnKeeper) lag(partition int) (rows, rowsTo int64, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.appended - k.covered, k.rowsTo[partition], k.known
}

// unknown says that the number of rows not in memory is not known, until it is next
// brought up to the newest row in the background.
func (k *columnKeeper) unknown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = false
	k.unknowns++
}

// reread says that the tables were read again: they may have rows and merges that
// storedRows was not told of, since a commit that failed may be stored all the same.
func (k *columnKeeper) reread(positions map[int]int64) {
	if k == nil {
		return
	}
	k.unknown()
	k.mu.Lock()
	k.merges++
	clear(k.aliases)
	k.rowsTo = maps.Clone(positions)
	k.mu.Unlock()
	k.signal()
}

// storedRows notes what an append has stored: aliases, and rows of records with these
// offsets.
func (k *columnKeeper) storedRows(partition int, offsets []int64, aliases []query.Alias) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.appended += int64(len(offsets))
	if n := len(offsets); n > 0 {
		k.rowsTo[partition] = offsets[n-1] + 1
	}
	wake := k.askedAt >= 0 && k.appended-k.askedAt <= idleRows && k.appended-k.covered > lagRows/2
	if len(aliases) > 0 {
		k.merges++
		for i := range aliases {
			delete(k.aliases, aliasKey{partition, aliases[i].Account})
		}
	}
	k.mu.Unlock()
	if wake {
		k.signal()
	}
}

// readRows notes how many rows a question has read into memory. Others may have counted
// them meanwhile, so what memory lacks is never told from the count.
func (k *columnKeeper) readRows(rows int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.covered = min(k.covered+rows, k.appended)
}

// forget removes what there is of an account, before its rows are erased. Until the
// returned function is called nothing is made.
func (k *columnKeeper) forget(q *query.EraseQuery) (again func(), err error) {
	if k == nil {
		return func() {}, nil
	}
	k.mu.Lock()
	k.interrupt()
	k.mu.Unlock()
	k.building.Lock()
	k.mu.Lock()
	k.merges++
	delete(k.aliases, aliasKey{q.Cut.Partition, q.Account})
	k.mu.Unlock()
	k.unknown()
	return func() {
		// A question that had begun before may have read rows again that were erased then.
		k.set.ForgetMemory(q.Cut.Partition, q.Account)
		k.mu.Lock()
		k.merges++
		delete(k.aliases, aliasKey{q.Cut.Partition, q.Account})
		k.mu.Unlock()
		k.building.Unlock()
		k.signal()
	}, k.set.Forget(q.Cut.Partition, q.Account)
}

// keepColumns makes files until the context ends.
func (s *Store) keepColumns(ctx context.Context) {
	k := s.columns
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		for k.wanted() {
			began := time.Now() // for the pace only
			more, err := s.buildColumns(ctx)
			if ctx.Err() != nil {
				return
			}
			rest := time.Since(began) / buildRest
			if err != nil && !errors.Is(err, context.Canceled) {
				s.opts.logger().Warn("columns of history could not be made; questions are answered from the tables", "file", s.path+ColumnsSuffix, "error", err)
				rest = time.Minute
			}
			if !more && err == nil {
				break
			}
			t := time.NewTimer(rest)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
	}
}

// buildColumns makes one file, or brings memory up to the newest row; more says that
// there is more to do.
func (s *Store) buildColumns(ctx context.Context) (more bool, err error) {
	k := s.columns
	k.building.Lock()
	defer k.building.Unlock()
	ctx, end := context.WithCancel(ctx)
	defer end()
	k.mu.Lock()
	k.interrupt = end
	k.mu.Unlock()
	positions, appended, unknowns, err := s.positions(ctx)
	if err != nil {
		return false, err
	}
	for partition, position := range positions {
		if k.set.Seal(partition, fileRows(s.groupRows, len(positions))) {
			err := k.set.AddSealed(partition)
			if err != nil {
				k.unknown() // questions no longer read into memory, which cannot become files
			}
			return true, err
		}
		ends, err := s.columnEnds(ctx, partition, position)
		if err != nil {
			return false, err
		}
		if ends := nextFile(k.set.Files(partition), k.set.Memory(partition), ends, position, s.groupRows); ends != nil {
			return true, s.buildFile(ctx, partition, ends)
		}
	}
	for partition, position := range positions {
		if err := s.extendColumns(ctx, partition, position, nil); err != nil {
			return false, err
		}
	}
	for partition := range positions {
		more = more || k.set.Memory(partition).Rows >= fileRows(s.groupRows, len(positions))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.covered = max(k.covered, appended)
	// Else memory may lack rows that are not counted, and is brought up once more.
	k.known = k.unknowns == unknowns
	return more || !k.known, nil
}

// fileRows is how many rows a partition's memory becomes a file with: all partitions together
// have about a row group in memory.
func fileRows(groupRows, partitions int) int { return max(1, groupRows/max(1, partitions)) }

// positions are how far each partition is stored, and what the keeper had counted then.
func (s *Store) positions(ctx context.Context) (positions map[int]int64, appended int64, unknowns uint64, err error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.mirror(ctx); err != nil {
		return nil, 0, 0, fmt.Errorf("history: position: %w", err)
	}
	k := s.columns
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(s.writer.stored.positions), k.appended, k.unknowns, nil
}

// columnEnds cuts the records below a position into ranges of about a row group, and
// returns where each ends. The last is the position.
func (s *Store) columnEnds(ctx context.Context, partition int, position int64) ([]int64, error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return pieces(ctx, c, query.Cut{Partition: partition, UpTo: position}, s.groupRows)
}

// nextFile says which file is to be made: its records begin at the first of the answer
// and are read in pieces that end at the others; nil for none. ends are those of row
// groups, of which the last, the position, is in no file yet. What is newest goes to memory
// first, and with it into a file, unless it is more than memory should have.
func nextFile(files []columns.Range, memory columns.Range, ends []int64, position int64, groupRows int) []int64 {
	within := func(from, to int64) []int64 {
		out := []int64{from}
		for _, e := range ends {
			if e > from && e < to && len(out) < fileGroups {
				out = append(out, e)
			}
		}
		return out
	}
	at := int64(0)
	for _, f := range files {
		if at < f.From { // a hole
			out := within(at, f.From)
			if len(out) < fileGroups {
				out = append(out, f.From)
			}
			return out
		}
		at = f.To
	}
	// Files that are small become one, unless most of the rows are in one already.
	for i := range files {
		if j := i + fileGroups; j <= len(files) && small(files[i:j], groupRows) {
			out := []int64{files[i].From}
			for _, f := range files[i:j] {
				out = append(out, f.To)
			}
			return out
		}
	}
	if out := within(at, position); len(out) > 1 && (at != memory.From || len(within(memory.To, position)) > 2) {
		return out
	}
	return nil
}

// small reports whether files are to become one: none has more than two row groups, nor a
// quarter of all rows, which would be read again for few others.
func small(files []columns.Range, groupRows int) bool {
	all, most := 0, 0
	for _, f := range files {
		all, most = all+f.Rows, max(most, f.Rows)
	}
	return most <= 2*groupRows && 4*most <= all
}

// buildFile makes a file, of files if there are such, else from the tables.
func (s *Store) buildFile(ctx context.Context, partition int, ends []int64) error {
	if joined, err := s.columns.set.Join(ctx, partition, ends[0], ends[len(ends)-1]); joined || err != nil {
		return err
	}
	b := columns.NewBuilder()
	for i := range ends[1:] {
		_, err := s.readColumns(ctx, partition, ends[i], ends[i+1], func(fill func(*columns.Builder)) { fill(b) })
		if err != nil {
			return err
		}
	}
	s.columns.unknown() // memory starts again behind the file
	return s.columns.set.Add(partition, ends[0], ends[len(ends)-1], b)
}

// extendColumns brings the memory of a partition up to a record. read counts the rows,
// unless it is nil.
func (s *Store) extendColumns(ctx context.Context, partition int, to int64, read *int64) error {
	return s.columns.set.Extend(partition, to, func(from int64, add func(func(*columns.Builder))) error {
		n, err := s.readColumns(ctx, partition, from, to, add)
		if err != nil {
			s.columns.unknown() // memory is empty then
		}
		if read != nil {
			*read = n
		}
		return err
	})
}

// readColumns reads the rows of the records from ≤ offset < to into a builder.
func (s *Store) readColumns(ctx context.Context, partition int, from, to int64, add func(func(*columns.Builder))) (rows int64, err error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	err = c.query(ctx, `SELECT account, record_offset, ordinal, time_ms, event_type, properties FROM events
		WHERE "partition" = $1 AND record_offset >= $2 AND record_offset < $3`,
		[]any{uint32(partition), from, to}, func(ch chunk) error {
			account, offset, ordinal, timeMs := column[uint64](ch, 0), column[int64](ch, 1), column[uint32](ch, 2), column[int64](ch, 3)
			types, properties := ch.refs(4), ch.refs(5)
			rows += int64(ch.rows)
			add(func(b *columns.Builder) {
				for i := range account {
					b.Add(account[i], types[i].bytes(), offset[i], ordinal[i], timeMs[i], properties[i].bytes())
				}
			})
			return ctx.Err()
		})
	if err != nil {
		return rows, fmt.Errorf("history: columns of records %d to %d: %w", from, to, err)
	}
	return rows, nil
}

// catchUp brings memory up to a cut, if it is not far behind.
func (s *Store) catchUp(ctx context.Context, cut query.Cut) error {
	k := s.columns
	at := k.set.MemoryTo(cut.Partition)
	lag, rowsTo, known := k.lag(cut.Partition)
	switch {
	case !known || cut.UpTo <= at:
		return nil
	case rowsTo <= at: // records without rows
		k.set.Skip(cut.Partition, at, cut.UpTo)
		return nil
	case lag > lagRows:
		return nil
	}
	// Others can use it, whatever becomes of the caller.
	read := int64(0)
	if err := s.extendColumns(context.WithoutCancel(ctx), cut.Partition, cut.UpTo, &read); err != nil {
		return err
	}
	k.readRows(read)
	k.mu.Lock()
	partitions := len(k.rowsTo)
	k.mu.Unlock()
	if k.set.Memory(cut.Partition).Rows >= fileRows(s.groupRows, partitions) {
		k.signal() // where each question reads what is newest, nothing else does
	}
	return nil
}

// Quick reports whether [Store.Matches] answers a question from columns alone, so that
// asking again costs little.
func (s *Store) Quick(ctx context.Context, q query.MatchQuery) bool {
	if s.columns == nil || !columns.Answers(&q) {
		return false
	}
	s.columns.ask()
	return s.catchUp(ctx, q.Cut) == nil && s.columns.set.Whole(&q)
}

// ExpectQuestions begins to make columns, as the first question does: one will come
// soon. It does not wait for them.
func (s *Store) ExpectQuestions() {
	if s.columns != nil {
		s.columns.ask()
	}
}

// matchColumns answers a question from columns, and from the tables what they lack.
func (s *Store) matchColumns(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error {
	k := s.columns
	k.ask()
	merged, err := s.aliasesAt(ctx, q.Cut, q.Account)
	if err != nil {
		return err
	}
	if err := s.catchUp(ctx, q.Cut); err != nil {
		return err
	}
	return k.set.Matches(ctx, &q, merged, func(from, to int64) error {
		rest := q
		rest.From, rest.To = from, to
		return s.matchTables(ctx, rest, fn)
	}, fn)
}

// aliasesAt are an account's aliases at a cut.
func (s *Store) aliasesAt(ctx context.Context, cut query.Cut, account uint64) (*columns.Aliases, error) {
	k, key := s.columns, aliasKey{cut.Partition, account}
	k.mu.Lock()
	t, merges := k.aliases[key], k.merges
	k.mu.Unlock()
	if t != nil && t.newest < cut.UpTo {
		return t.aliases, nil
	}
	t, err := s.readAliases(ctx, key, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if t.newest >= cut.UpTo { // some are of later
		t, err = s.readAliases(ctx, key, cut.UpTo)
		if err != nil {
			return nil, err
		}
		return t.aliases, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.merges == merges {
		if len(k.aliases) >= maxAliasTables {
			clear(k.aliases)
		}
		k.aliases[key] = t
	}
	return t.aliases, nil
}

// readAliases reads an account's aliases of the records below an offset.
func (s *Store) readAliases(ctx context.Context, key aliasKey, below int64) (*aliasTable, error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	t := &aliasTable{newest: -1}
	winners := map[uint32]uint32{}
	err = c.query(ctx, `SELECT ordinal, arg_max(winner, (record_offset, record_index, seq)), max(record_offset) FROM aliases
		WHERE account = $1 AND "partition" = $2 AND record_offset < $3 GROUP BY ordinal`,
		[]any{key.account, uint32(key.partition), below}, func(ch chunk) error {
			ordinal, winner, offset := column[uint32](ch, 0), column[uint32](ch, 1), column[int64](ch, 2)
			for i, o := range ordinal {
				winners[o] = winner[i]
				t.newest = max(t.newest, offset[i])
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("history: aliases of account %d: %w", key.account, err)
	}
	t.aliases = columns.NewAliases(winners)
	return t, nil
}
