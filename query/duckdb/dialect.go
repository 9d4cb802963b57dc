package duckdb

import (
	"fmt"
	"strings"
)

// dialect is DuckDB's [query.Dialect]. A JSON value is the text that
// json_extract writes, which is the same for equal strings, and the shortest
// decimal for numbers that are not whole.
type dialect struct{}

// Placeholder numbers parameters, so that one may be used anywhere.
func (dialect) Placeholder(n int) string { return fmt.Sprintf("$%d", n) }

// Extract uses JSON pointers, which quote every key well, except for keys that
// are numbers: pointers would take those as indexes of arrays, paths do not.
// (Paths in turn take the quoted key * as a wildcard.)
func (dialect) Extract(object string, path []string, bind func(any) string) string {
	expr := "nullif(" + object + ", '')"
	for i := 0; i < len(path); {
		pointer := ""
		if isNumber(path[i]) {
			pointer = `$."` + path[i] + `"`
			i++
		} else {
			for ; i < len(path) && !isNumber(path[i]); i++ {
				pointer += "/" + pointerEscape.Replace(path[i])
			}
		}
		expr = fmt.Sprintf("json_extract(%s, %s)", expr, bind(pointer))
	}
	return "nullif(CAST(" + expr + " AS VARCHAR), 'null')"
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func isNumber(key string) bool { return key != "" && strings.Trim(key, "0123456789") == "" }

// Number relies on JSON strings keeping their quotes, which no number has.
func (dialect) Number(json string) string { return "TRY_CAST(" + json + " AS DOUBLE)" }

func (dialect) Text(json string) string {
	return fmt.Sprintf(`CASE WHEN starts_with(%s, '"') THEN json_extract_string(%s, '$') END`, json, json)
}

func (dialect) TextKey(param string) string {
	return "CAST(to_json(CAST(" + param + " AS VARCHAR)) AS VARCHAR)"
}

func (dialect) IsArray(json string) string { return "starts_with(" + json + ", '[')" }

func (dialect) AnyElement(array string, condition func(string) string) string {
	return fmt.Sprintf("list_bool_or(list_transform(json_extract(%s, '$[*]'), lambda element: %s))",
		array, condition("CAST(element AS VARCHAR)"))
}

func (dialect) ScalarKey(json, number string) string {
	// Adding zero makes one of 0 and -0.
	return fmt.Sprintf(`CASE WHEN %s IS NOT NULL THEN CAST(%s + 0.0 AS VARCHAR) WHEN left(%s, 1) NOT IN ('[', '{') THEN %s END`,
		number, number, json, json)
}

// Micros takes the short way for m/10⁶ with up to 15 digits, as MicrosOf does.
// Else the digits of the text decide. Casting them to 6 decimals rounds half
// away from zero, which is put right where it was exactly half and the result
// is odd: in a text without exponent, where the seventh decimal is the last and
// a 5. The few texts with an exponent (below 10⁻⁶) take a DECIMAL of 24
// decimals, which costs microseconds and holds all that matter: 17 digits of a
// number from 10⁻⁷ on. Below, the result is 0.
func (dialect) Micros(json, number string) string {
	exact := "TRY_CAST(JSON AS DECIMAL(38, 24))"
	rounded := "CAST(" + exact + " AS DECIMAL(38, 6))"
	return strings.NewReplacer(
		"SHORT", "CAST(CAST(TRY_CAST("+json+" AS DECIMAL(18, 6)) AS DECIMAL(38, 6)) * 1000000 AS BIGINT)",
		"LONG", "CAST("+strings.ReplaceAll(rounded, "JSON", json)+" * 1000000 AS BIGINT)",
		"REST", strings.ReplaceAll("("+exact+" - "+rounded+")", "JSON", json),
		"NUMBER", number, "JSON", json,
	).Replace(`CASE
		WHEN abs(NUMBER) < 1e9 AND CAST(NUMBER * 1e6 AS BIGINT) / 1e6 = NUMBER THEN CAST(NUMBER * 1e6 AS BIGINT)
		WHEN abs(NUMBER) >= 1e12 THEN NULL
		WHEN contains(JSON, 'e') THEN
			LONG + CASE WHEN abs(REST) = 0.0000005 AND LONG % 2 <> 0 THEN CAST(sign(REST) AS BIGINT) ELSE 0 END
		WHEN right(JSON, 1) = '5' AND instr(JSON, '.') = length(JSON) - 7 AND SHORT % 2 <> 0 THEN SHORT - CAST(sign(NUMBER) AS BIGINT)
		ELSE SHORT END`)
}

// TimeMs checks the form before it reads numbers off it. The lambda names the
// text, so that it is computed once.
func (dialect) TimeMs(text string) string {
	return "list_transform([" + text + "], lambda t: " + timeMs + ")[1]"
}

// timeMs is the time of text t: the day, which DuckDB checks, plus the time of
// day, minus the offset.
var timeMs = func() string {
	number := func(from string) string { return "TRY_CAST(" + from + " AS BIGINT)" }
	fraction := number(`rpad(left(regexp_extract(t, '\.(\d+)', 1), 3), 3, '0')`)
	return strings.NewReplacer(
		"FORM", `'(\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})-\d{2}-\d{2}`+
			`(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))?'`,
		"HOUR", number("substr(t, 12, 2)"), "MINUTE", number("substr(t, 15, 2)"), "SECOND", number("substr(t, 18, 2)"),
		"FRACTION", fraction,
		"OFFHOUR", number("substr(t, -5, 2)"), "OFFMINUTE", number("right(t, 2)"),
	).Replace(`CASE WHEN regexp_full_match(t, FORM) THEN
		epoch_ms(CAST(TRY_CAST(left(t, 10) AS DATE) AS TIMESTAMP))
		+ CASE WHEN length(t) = 10 THEN 0 ELSE
			HOUR * 3600000 + MINUTE * 60000 + SECOND * 1000
			+ CASE WHEN substr(t, 20, 1) = '.' THEN FRACTION ELSE 0 END
			- CASE WHEN right(t, 1) = 'Z' THEN 0 ELSE
				CASE WHEN substr(t, -6, 1) = '-' THEN -1 ELSE 1 END * (OFFHOUR * 3600000 + OFFMINUTE * 60000) END
		END END`)
}()

func (dialect) Contains(text, part string) string { return "contains(" + text + ", " + part + ")" }

func (dialect) StartsWith(text, prefix string) string {
	return "starts_with(" + text + ", " + prefix + ")"
}

func (dialect) EndsWith(text, suffix string) string { return "ends_with(" + text + ", " + suffix + ")" }

// Sieve halves what a condition on a property costs.
func (d dialect) Sieve(object, part string) string { return d.Contains(object, part) }

func (dialect) Integer(param string) string { return "CAST(" + param + " AS HUGEINT)" }

func (dialect) Wide(integer string) string { return "CAST(" + integer + " AS HUGEINT)" }

func (dialect) MonthStart(ms string) string {
	return "epoch_ms(date_trunc('month', epoch_ms(" + ms + ")))"
}

// Stored has nothing to say: a transaction stores all of a batch or nothing.
func (dialect) Stored(string) string { return "" }

func (dialect) Latest(value string, key ...string) string {
	return "arg_max(" + value + ", (" + strings.Join(key, ", ") + "))"
}
