package clickhouse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrLostComment reports that a table has lost the generation in its comment, so that it is
// not known what was committed to it.
var ErrLostComment = errors.New("a table of history has lost its comment")

// checkMarks refuses tables that have lost a generation. A table that was made again has
// another one; one of version 1 never had any. So where commits name those that are there and
// more, a comment was overwritten, or a table without one was put in the place of another.
// Nothing may count then, and nothing may be stored: what was committed with fewer generations
// may be of before the table was made again, without its rows.
func (t tables) checkMarks(committed []string) error {
	var whole []string
	for _, c := range committed {
		if lostMarks(t.generation, c) != nil && !slices.Contains(whole, c) {
			whole = append(whole, c)
		}
	}
	if len(whole) == 0 {
		return nil
	}
	slices.Sort(whole)
	database := identifier(t.database)
	anew := fmt.Sprintf("If it is another table than before, TRUNCATE TABLE %s.commits: history is rebuilt from the log, if that still has its beginning", database)
	marks := marksOf(whole[0])
	if len(whole) > 1 || len(marks) < len(rowTables) {
		return fmt.Errorf("%w: of %s, one or more lack what commits name for them, '%s': ALTER TABLE %s.… MODIFY COMMENT it (generation of commits has those of the three in this order; "+
			"that of the commits whose writers have rows in the table is the right one). %s",
			ErrLostComment, strings.Join(rowTables, ", "), strings.Join(whole, "' or '"), database, anew)
	}
	var put []string
	for i, table := range rowTables {
		if slices.Contains(lostMarks(t.generation, whole[0]), marks[i]) {
			put = append(put, fmt.Sprintf("ALTER TABLE %s.%s MODIFY COMMENT '%s'", database, table, marks[i]))
		}
	}
	return fmt.Errorf("%w: put it back with %s (other text may stand beside it). %s", ErrLostComment, strings.Join(put, " and "), anew)
}

// lostMarks returns those of a generation that another one lacks, if that has all the others
// and no more.
func lostMarks(present, committed string) (missing []string) {
	have := marksOf(present)
	for _, m := range marksOf(committed) {
		if len(have) > 0 && have[0] == m {
			have = have[1:]
			continue
		}
		missing = append(missing, m)
	}
	if len(have) > 0 {
		return nil
	}
	return missing
}

// marksOf divides a generation into those of the tables.
func marksOf(generation string) (marks []string) {
	for _, m := range strings.Split(generation, generationMark)[1:] {
		marks = append(marks, generationMark+m)
	}
	return marks
}
