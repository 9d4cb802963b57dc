package duckdb

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/segment"
)

// sqlBuilder collects parameters while SQL is written: constants are bound,
// never spliced. Parameters are numbered, so text may be built in any order.
type sqlBuilder struct{ args []any }

func (b *sqlBuilder) bind(v any) string {
	b.args = append(b.args, v)
	return fmt.Sprintf("$%d", len(b.args))
}

// pointer is the JSON pointer (RFC 6901) of a path.
func pointer(path []string) string {
	var s strings.Builder
	for _, key := range path {
		s.WriteByte('/')
		s.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return s.String()
}

// property is an expression for the JSON value behind a path, NULL when there
// is none. A pointer would go into arrays by index; a path of ours does not.
func (b *sqlBuilder) property(path []string) string {
	value := fmt.Sprintf("json_extract(doc, %s)", b.bind(pointer(path)))
	var guards []string
	for i := 1; i < len(path); i++ {
		if arrayIndex(path[i]) {
			guards = append(guards, fmt.Sprintf("json_type(doc, %s) = 'OBJECT'", b.bind(pointer(path[:i]))))
		}
	}
	if len(guards) == 0 {
		return value
	}
	return fmt.Sprintf("CASE WHEN %s THEN %s END", strings.Join(guards, " AND "), value)
}

// arrayIndex tells whether a key could be taken for a place in an array.
func arrayIndex(key string) bool { return strings.Trim(key, "0123456789-#") == "" }

const isNumber = `IN ('UBIGINT', 'BIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE')`

// predicate is a condition on a JSON value, true or false, never NULL.
func (b *sqlBuilder) predicate(p *segment.Predicate, atMs int64) string {
	op, negated := positive(p.Op)
	value := b.property(p.Path)
	var cond string
	if op == segment.OpExists {
		cond = fmt.Sprintf("coalesce(json_type(%s) <> 'NULL', false)", value)
	} else {
		scalar := b.scalar(p, op, "x", atMs)
		// An array holds the condition if one of its elements does; a scalar is
		// looked at as an array of itself.
		cond = fmt.Sprintf(`coalesce(len(list_filter(CASE json_type(%[1]s) WHEN 'ARRAY' THEN json_extract(%[1]s, '$[*]') ELSE [%[1]s] END, lambda x: coalesce(%[2]s, false))) > 0, false)`, value, scalar)
	}
	if negated {
		return "NOT " + cond
	}
	return cond
}

// positive takes the negation off an operator.
func positive(op segment.Op) (segment.Op, bool) {
	switch op {
	case segment.OpNe:
		return segment.OpEq, true
	case segment.OpNotIn:
		return segment.OpIn, true
	case segment.OpNotContains:
		return segment.OpContains, true
	case segment.OpNotExists:
		return segment.OpExists, true
	case segment.OpNotInLastDays:
		return segment.OpInLastDays, true
	}
	return op, false
}

// scalar is a positive condition on the JSON scalar x; NULL counts as false.
func (b *sqlBuilder) scalar(p *segment.Predicate, op segment.Op, x string, atMs int64) string {
	text := fmt.Sprintf("json_extract_string(%s, '$')", x)
	isText := fmt.Sprintf("json_type(%s) = 'VARCHAR'", x)
	number := fmt.Sprintf("CAST(%s AS DOUBLE)", x)
	compare := func(sqlOp string, v segment.Value) string {
		switch v.Kind {
		case segment.ValueString:
			return fmt.Sprintf("(%s AND %s %s %s)", isText, text, sqlOp, b.bind(v.Str))
		case segment.ValueNumber:
			return fmt.Sprintf("(CASE WHEN json_type(%s) %s THEN %s %s %s END)", x, isNumber, number, sqlOp, b.bind(v.Num))
		}
		return fmt.Sprintf("(json_type(%s) = 'BOOLEAN' AND %s = %s)", x, text, b.bind(fmt.Sprint(v.Bool)))
	}
	textCall := func(fn string) string {
		return fmt.Sprintf("(%s AND %s(%s, %s))", isText, fn, text, b.bind(p.Values[0].Str))
	}
	switch op {
	case segment.OpEq, segment.OpIn:
		var any []string
		for _, v := range p.Values {
			any = append(any, "coalesce("+compare("=", v)+", false)")
		}
		return "(" + strings.Join(any, " OR ") + ")"
	case segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe:
		return compare(string(op), p.Values[0])
	case segment.OpBetween:
		return fmt.Sprintf("(%s AND %s)", compare(">=", p.Values[0]), compare("<=", p.Values[1]))
	case segment.OpContains:
		return textCall("contains")
	case segment.OpStartsWith:
		return textCall("starts_with")
	case segment.OpEndsWith:
		return textCall("ends_with")
	case segment.OpBefore:
		return fmt.Sprintf("(%s AND %s < %s)", isText, timeMs(text), b.bind(p.TimeMs))
	case segment.OpAfter:
		return fmt.Sprintf("(%s AND %s > %s)", isText, timeMs(text), b.bind(p.TimeMs))
	case segment.OpInLastDays:
		return fmt.Sprintf("(%[1]s AND %[2]s > %[3]s AND %[2]s <= %[4]s)", isText, timeMs(text), b.bind(atMs-p.WindowMs), b.bind(atMs))
	}
	return "false"
}

// timeMs parses the times of [segment.ParseTime] into Unix milliseconds, NULL
// for anything else. The fraction is cut to milliseconds.
func timeMs(s string) string {
	return fmt.Sprintf(`(CASE WHEN regexp_full_match(%[1]s, '[0-9]{4}-[0-9]{2}-[0-9]{2}(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?') AND %[1]s >= '0001'
THEN date_diff('day', DATE '1970-01-01', TRY_CAST(substr(%[1]s, 1, 10) AS DATE)) * 86400000::BIGINT
+ CASE WHEN length(%[1]s) = 10 THEN 0 ELSE
  CAST(substr(%[1]s, 12, 2) AS BIGINT) * 3600000 + CAST(substr(%[1]s, 15, 2) AS BIGINT) * 60000 + CAST(substr(%[1]s, 18, 2) AS BIGINT) * 1000
  + CAST(substr(rpad(regexp_extract(%[1]s, '\.([0-9]+)', 1), 3, '0'), 1, 3) AS BIGINT)
  - CASE WHEN ends_with(%[1]s, 'Z') THEN 0 ELSE (CASE WHEN substr(%[1]s, -6, 1) = '+' THEN 1 ELSE -1 END) * (CAST(substr(%[1]s, -5, 2) AS BIGINT) * 3600000 + CAST(substr(%[1]s, -2, 2) AS BIGINT) * 60000) END
END END)`, s)
}
