package clickhouse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// dialect is ClickHouse's [query.Dialect]. A JSON value is the text that
// JSONExtractRaw writes: the same for equal strings, and the shortest decimal for
// numbers that are not whole.
//
// It relies on settings of the connection ([Options]): a join that finds nothing
// gives NULL, names of columns go before aliases, and texts are read as exact
// floats.
type dialect struct{ cover kept }

// Placeholder is a mark that [bound] replaces. Nothing else in a statement has
// its form.
func (dialect) Placeholder(n int) string { return "{#" + strconv.Itoa(n) + "}" }

// bound puts the arguments in place of their marks.
func bound(sql string, args []any) string {
	var out strings.Builder
	for {
		i := strings.Index(sql, "{#")
		if i < 0 {
			out.WriteString(sql)
			return out.String()
		}
		end := i + strings.IndexByte(sql[i:], '}')
		n, err := strconv.Atoi(sql[i+2 : end])
		if err != nil {
			panic("clickhouse: a mark without a number")
		}
		out.WriteString(sql[:i])
		out.WriteString(literal(args[n-1]))
		sql = sql[end+1:]
	}
}

// literal is the value in SQL, exactly.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case float64:
		return fmt.Sprintf("reinterpretAsFloat64(toUInt64(%d))", math.Float64bits(v))
	case int64:
		return fmt.Sprintf("toInt64(%d)", v)
	case uint64, uint32:
		return fmt.Sprint(v)
	}
	panic(fmt.Sprintf("clickhouse: an argument of type %T", v))
}

// quote is a text as a literal.
func quote(text string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&out, `\x%02X`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('\'')
	return out.String()
}

// Extract takes keys as constants, which are never indexes of arrays when they
// are texts. What is not there is the empty text.
func (dialect) Extract(object string, path []string, bind func(any) string) string {
	readable := strings.TrimSuffix(object, "properties") + "readable"
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i] = bind(key)
	}
	return fmt.Sprintf("nullif(nullif(JSONExtractRaw(if(empty(%s), %s, %s), %s), ''), 'null')",
		readable, object, readable, strings.Join(keys, ", "))
}

// Number relies on JSON strings keeping their quotes, which no number has.
func (dialect) Number(json string) string { return "toFloat64OrNull(" + json + ")" }

func (dialect) Text(json string) string {
	return fmt.Sprintf(`if(startsWith(%s, '"'), JSONExtractString(%s), NULL)`, json, json)
}

// TextKey goes the way of Extract, so that the text is written alike.
func (dialect) TextKey(param string) string {
	return `JSONExtractRaw(concat('{"k":', toJSONString(` + param + `), '}'), 'k')`
}

func (dialect) IsArray(json string) string { return "startsWith(" + json + ", '[')" }

func (dialect) AnyElement(array string, condition func(string) string) string {
	return fmt.Sprintf("arrayExists(element -> coalesce(%s, false), JSONExtractArrayRaw(coalesce(%s, '')))", condition("element"), array)
}

func (dialect) ScalarKey(json, number string) string {
	// Adding zero makes one of 0 and -0.
	return fmt.Sprintf(`CASE WHEN %s IS NOT NULL THEN toString(%s + 0.0) WHEN substring(%s, 1, 1) NOT IN ('[', '{') THEN %s END`,
		number, number, json, json)
}

// Micros takes the short way for m/10⁶ with up to 15 digits, as MicrosOf does.
// Else the shortest decimal decides, which toString writes, rounded half-even
// as a decimal. It holds all digits of a number from 4·10⁻⁷ on: 17 digits, the
// first at the seventh decimal. Below, the result is 0.
func (dialect) Micros(_, number string) string {
	return strings.ReplaceAll(`CASE
		WHEN abs(NUMBER) < 1e9 AND roundBankers(NUMBER * 1e6) / 1e6 = NUMBER THEN toInt128(roundBankers(NUMBER * 1e6))
		WHEN abs(NUMBER) >= 1e12 THEN NULL
		WHEN abs(NUMBER) < 4e-7 THEN toInt128(0)
		ELSE toInt128(roundBankers(toDecimal256OrNull(toString(NUMBER), 30), 6) * 1000000) END`, "NUMBER", number)
}

// TimeMs checks the form before it reads numbers off it. The lambda names the
// text, so that it is written once.
func (dialect) TimeMs(text string) string {
	return "arrayMap(t -> " + timeMs + ", [" + text + "])[1]"
}

// timeMs is the time of text t: days by the Gregorian calendar, plus the time of
// day, minus the offset. ClickHouse's own dates end at both sides of a few
// centuries.
var timeMs = func() string {
	number := func(from string) string { return "toInt64OrZero(" + from + ")" }
	year, month, day := number("substring(t, 1, 4)"), number("substring(t, 6, 2)"), number("substring(t, 9, 2)")
	return strings.NewReplacer(
		"FORM", `'^(?:\\d{3}[1-9]|\\d{2}[1-9]\\d|\\d[1-9]\\d{2}|[1-9]\\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])`+
			`(?:T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d))?\\z'`,
		"LASTDAY", "multiIf("+month+" = 2, if("+year+" % 4 = 0 AND ("+year+" % 100 <> 0 OR "+year+" % 400 = 0), 29, 28), "+month+" IN (4, 6, 9, 11), 30, 31)",
		"DAYS", daysOf(year, month, day), "DAY", day,
		"HOUR", number("substring(t, 12, 2)"), "MINUTE", number("substring(t, 15, 2)"), "SECOND", number("substring(t, 18, 2)"),
		"FRACTION", number(`rightPad(substring(extract(t, '\\.(\\d+)'), 1, 3), 3, '0')`),
		"OFFHOUR", number("substring(t, -5, 2)"), "OFFMINUTE", number("substring(t, -2)"),
	).Replace(`CASE WHEN match(t, FORM) AND DAY <= LASTDAY THEN
		DAYS * 86400000
		+ CASE WHEN length(t) = 10 THEN 0 ELSE
			HOUR * 3600000 + MINUTE * 60000 + SECOND * 1000
			+ CASE WHEN substring(t, 20, 1) = '.' THEN FRACTION ELSE 0 END
			- CASE WHEN substring(t, -1) = 'Z' THEN 0 ELSE
				CASE WHEN substring(t, -6, 1) = '-' THEN -1 ELSE 1 END * (OFFHOUR * 3600000 + OFFMINUTE * 60000) END
		END END`)
}()

// daysOf counts the days from 1970 to a date from year 1 on. Years begin in
// March, eras of 400 of them are alike.
func daysOf(year, month, day string) string {
	y := "(" + year + " - if(" + month + " <= 2, 1, 0))"
	ofYear := "(intDiv(153 * (" + month + " + if(" + month + " > 2, -3, 9)) + 2, 5) + " + day + " - 1)"
	return "(" + y + " * 365 + intDiv(" + y + ", 4) - intDiv(" + y + ", 100) + intDiv(" + y + ", 400) + " + ofYear + " - 719468)"
}

func (dialect) Contains(text, part string) string { return "position(" + text + ", " + part + ") > 0" }

func (dialect) StartsWith(text, prefix string) string {
	return "startsWith(" + text + ", " + prefix + ")"
}

func (dialect) EndsWith(text, suffix string) string { return "endsWith(" + text + ", " + suffix + ")" }

// Integer and Wide have 256 bits, because a product that is too large would not
// be an error here.
// Sieve was not measured.
func (dialect) Sieve(string, string) string { return "" }

func (dialect) Integer(param string) string { return "toInt256(" + param + ")" }

func (dialect) Wide(integer string) string { return "toInt256(" + integer + ")" }

// MonthStart goes back from the day to the month's first, the way daysOf counts
// days, for times from the year 1 on.
func (dialect) MonthStart(ms string) string {
	const dayMs = "86400000"
	// Rounded down, which intDiv does not do below zero.
	day := "intDiv(" + ms + " - (" + ms + " % " + dayMs + " + " + dayMs + ") % " + dayMs + ", " + dayMs + ")"
	const yearOfEra = "intDiv(e - intDiv(e, 1460) + intDiv(e, 36524) - intDiv(e, 146096), 365)"
	return strings.NewReplacer(
		"OFYEAR", strings.ReplaceAll("(e - (365 * Y + intDiv(Y, 4) - intDiv(Y, 100)))", "Y", yearOfEra),
		"DAY", day,
	).Replace(`arrayMap(d -> (d - arrayMap(e -> arrayMap(y -> y - intDiv(153 * intDiv(5 * y + 2, 153) + 2, 5), [OFYEAR])[1], [(d + 719468) % 146097])[1]) * ` + dayMs + `, [DAY])[1]`)
}

func (dialect) Latest(value string, key ...string) string {
	return "argMax(" + value + ", (" + strings.Join(key, ", ") + "))"
}

// Stored keeps to the rows of the cover.
func (d dialect) Stored(table string) string { return " AND " + d.cover.condition(table) }
