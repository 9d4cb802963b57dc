package duckdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// Activity implements [query.History].
func (s *Store) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	sql, args := activitySQL(&q)
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out := roaring.New()
	err = c.query(ctx, sql, args, func(ch chunk) error {
		out.AddMany(column[uint32](ch, 0))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: activity: %w", err)
	}
	return out, nil
}

// activitySQL writes the question: events in the window that satisfy where,
// grouped by the profile they count for at the cut, compared.
//
// All numbers are exact: constants and values are integers of millionths.
func activitySQL(q *query.ActivityQuery) (sql string, args []any) {
	b := &sqlBuilder{}
	a := q.Leaf
	conds := []string{
		"account = " + b.bind(q.Account),
		`"partition" = ` + b.bind(uint32(q.Cut.Partition)),
		"record_offset < " + b.bind(q.Cut.UpTo),
		"event_type = " + b.bind(a.Event),
		"time_ms <= " + b.bind(q.AtMs),
	}
	if a.WindowMs > 0 {
		conds = append(conds, "time_ms > "+b.bind(q.AtMs-a.WindowMs))
	}
	columns := "ordinal"
	if len(a.Where) > 0 || a.Aggregate != nil {
		// As JSON; events without properties have the empty text.
		columns += ", CAST(nullif(properties, '') AS JSON) AS doc"
	}
	var where []string
	for i := range a.Where {
		where = append(where, b.predicate(&a.Where[i], q.AtMs))
	}
	value, measure := "", "count(*)"
	if a.Aggregate != nil {
		value, measure = b.aggregate(a.Aggregate)
	}
	compare := b.compare(a)
	if q.Negate {
		compare = fmt.Sprintf("NOT coalesce(%s, false)", compare)
	}
	var s strings.Builder
	fmt.Fprintf(&s, `WITH alias AS (
SELECT ordinal AS loser, arg_max(winner, record_offset * 4294967296::HUGEINT + record_index) AS winner FROM aliases
WHERE account = %s AND "partition" = %s AND record_offset < %s GROUP BY ordinal),
matching AS (SELECT %s FROM events WHERE %s),
filtered AS (SELECT ordinal%s FROM matching%s),
grouped AS (SELECT coalesce(winner, ordinal) AS profile, %s AS m, count(*) AS n%s FROM filtered LEFT JOIN alias ON ordinal = loser GROUP BY profile)
SELECT profile FROM grouped WHERE %s`,
		b.bind(q.Account), b.bind(uint32(q.Cut.Partition)), b.bind(q.Cut.UpTo),
		columns, strings.Join(conds, " AND "),
		value, whereClause(where), measure, ratioCount(a), compare)
	return s.String(), b.args
}

func whereClause(conds []string) string {
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
}

// ratioCount adds the number of values to a group, for averages.
func ratioCount(a *segment.Activity) string {
	if a.Aggregate != nil && a.Aggregate.Fn == segment.FnAvg {
		return ", count(v) AS c"
	}
	return ""
}

// aggregate returns the column with the property's value, and the function of
// it over a group.
func (b *sqlBuilder) aggregate(g *segment.Aggregate) (value, measure string) {
	x := b.property(g.Property)
	if g.Fn == segment.FnDistinct {
		// Strings, booleans and numbers by value; + 0.0 makes -0 a 0.
		return fmt.Sprintf(`, CASE WHEN json_type(%[1]s) = 'VARCHAR' THEN 's' || json_extract_string(%[1]s, '$')
WHEN json_type(%[1]s) = 'BOOLEAN' THEN 'b' || json_extract_string(%[1]s, '$')
WHEN json_type(%[1]s) %[2]s THEN 'n' || CAST(CAST(%[1]s AS DOUBLE) + 0.0 AS VARCHAR) END AS v`, x, isNumber), "count(DISTINCT v)"
	}
	value = fmt.Sprintf(", %s AS v", micros(fmt.Sprintf("CASE WHEN json_type(%[1]s) %[2]s THEN CAST(%[1]s AS DOUBLE) END", x, isNumber)))
	switch g.Fn {
	case segment.FnMin:
		return value, "min(v)"
	case segment.FnMax:
		return value, "max(v)"
	case segment.FnAvg:
		return value, "sum(v)"
	}
	return value, "coalesce(sum(v), 0)"
}

// micros rounds a DOUBLE half-even to millionths as a BIGINT, from the shortest
// decimal form of the number; magnitudes of 10¹² and more are NULL.
//
// The first branch is the fast one: k millionths with at most 15 digits that
// convert back to the very same DOUBLE are its shortest decimal form, because
// no two decimals of up to 15 digits share a DOUBLE. All else goes by the text:
// 24 decimals hold the 17 digits of every number that could be a tie, and
// smaller ones round to 0.
func micros(x string) string {
	return fmt.Sprintf(`list_transform([%s], lambda x: CASE
WHEN abs(x) < 1e9 AND CAST(round(x * 1e6) AS DOUBLE) / 1e6 = x THEN CAST(round(x * 1e6) AS BIGINT)
WHEN abs(x) < 1e12 THEN list_transform([TRY_CAST(CAST(x AS VARCHAR) AS DECIMAL(38,24))], lambda d:
  list_transform([CAST(d - trunc(d) AS DECIMAL(25,24)) * CAST(1000000 AS DECIMAL(7,0))], lambda f:
    CAST(trunc(d) AS BIGINT) * 1000000 + CAST(trunc(f) AS BIGINT)
    + CASE WHEN abs(f - trunc(f)) > 0.5 OR (abs(f - trunc(f)) = 0.5 AND CAST(trunc(f) AS BIGINT) %% 2 <> 0) THEN CAST(sign(f) AS BIGINT) ELSE 0 END)[1])[1]
END)[1]`, x)
}

// compare writes the comparison of a group's measure m with the constants. It
// is NULL for an absent measure.
func (b *sqlBuilder) compare(a *segment.Activity) string {
	c, left, right := a.Count, "m * 1000000::HUGEINT", "%s"
	if a.Aggregate != nil {
		c = &a.Aggregate.Compare
		switch a.Aggregate.Fn {
		case segment.FnAvg:
			left, right = "CAST(m AS HUGEINT)", "(%s * c)"
		case segment.FnSum, segment.FnMin, segment.FnMax:
			left = "CAST(m AS HUGEINT)"
		}
	}
	constant := func(i int) string {
		return fmt.Sprintf(right, "CAST("+b.bind(c.Micros[i].String())+" AS HUGEINT)")
	}
	switch c.Op {
	case segment.OpBetween:
		return fmt.Sprintf("%s BETWEEN %s AND %s", left, constant(0), constant(1))
	case segment.OpIn, segment.OpNotIn:
		list := make([]string, len(c.Micros))
		for i := range list {
			list[i] = constant(i)
		}
		not := ""
		if c.Op == segment.OpNotIn {
			not = "NOT "
		}
		return fmt.Sprintf("%s %sIN (%s)", left, not, strings.Join(list, ", "))
	}
	return fmt.Sprintf("%s %s %s", left, c.Op, constant(0))
}
