package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// CSVOptions say how the columns of a CSV file are read.
type CSVOptions struct {
	// Map has another name for a column of the first row, such as external_id for
	// customer_no. An empty one leaves the column out.
	Map map[string]string
	// Types has the type of a column, by its name after Map: text, number or boolean. A
	// column without one is of numbers, or of true and false, when all its cells are, and
	// of text otherwise.
	Types map[string]string
	// People reports that a row is a person, without an event type and a time.
	People bool
	// EventType is the event type of all rows of a file without a column event_type.
	EventType string

	found []cellKind // what the cells of each column are; nil before they were looked at
}

var cellKinds = map[string]cellKind{"text": textCell, "number": numberCell, "boolean": booleanCell}

// ParseCSVOptions reads the values of --columns, "id:text,zip:text", and of --map,
// "customer_no=external_id". The error names the flag.
func ParseCSVOptions(columns, names string) (o CSVOptions, err error) {
	o.Map, o.Types = map[string]string{}, map[string]string{}
	for _, x := range split(columns) {
		name, kind, ok := cutLast(x, ":")
		if _, known := cellKinds[kind]; !ok || !known || name == "" {
			return o, fmt.Errorf("--columns: %q; write NAME:TYPE with the type text, number or boolean, separated by commas", x)
		}
		if _, twice := o.Types[name]; twice {
			return o, fmt.Errorf("--columns: %s occurs twice; name each column once", name)
		}
		o.Types[name] = kind
	}
	for _, x := range split(names) {
		from, to, ok := strings.Cut(x, "=")
		if from, to = strings.TrimSpace(from), strings.TrimSpace(to); !ok || from == "" || to == "" {
			return o, fmt.Errorf("--map: %q; write NAME=FIELD, such as customer_no=external_id, separated by commas", x)
		}
		if _, twice := o.Map[from]; twice {
			return o, fmt.Errorf("--map: %s occurs twice; name each column once", from)
		}
		o.Map[from] = to
	}
	return o, nil
}

func split(list string) []string {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+len(sep):]), true
}

// kindsOf reads a whole file and finds out what the cells of each column are, so that
// a column does not have numbers in some rows and text in others.
func kindsOf(r io.Reader, o CSVOptions) ([]cellKind, error) {
	c, err := newCSV(r, o)
	if err != nil {
		return nil, err
	}
	return c.kinds(func([]string, int) error { return nil })
}

// kinds reads the rest of the file. each is called with the cells and the line of every
// row; malformed rows have no cells.
func (c *csvRows) kinds(each func(cells []string, line int) error) ([]cellKind, error) {
	kinds := make([]cellKind, c.columns)
	for i := range kinds {
		kinds[i] = freeCell // no cell with anything in it so far
	}
	for {
		c.bounded.left = maxRowBytes
		cells, err := c.in.Read()
		var malformed *csv.ParseError
		line := 0
		switch {
		case err == io.EOF:
			return kinds, nil
		case err == nil:
			line, _ = c.in.FieldPos(0)
		case errors.As(err, &malformed) && !errors.Is(err, errRowTooLong):
			cells, line = nil, malformed.StartLine // refused when it is imported
		default:
			return nil, err
		}
		if err := each(cells, line); err != nil {
			return nil, err
		}
		for i, cell := range cells[:min(len(cells), len(kinds))] {
			if cell == "" || kinds[i] == textCell {
				continue
			}
			kind := textCell
			switch {
			case cell == "true" || cell == "false":
				kind = booleanCell
			case isNumber(cell):
				kind = numberCell
			}
			if kinds[i] != freeCell && kinds[i] != kind {
				kind = textCell
			}
			kinds[i] = kind
		}
	}
}

// exactDigits is how many digits a number may have to be kept as it is written: beyond
// it two different ones may be the same.
const exactDigits = 15

// isNumber reports whether a cell is a JSON number that loses nothing as one.
func isNumber(s string) bool {
	if s == "true" || s == "false" || !isLiteral(s) {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	digits := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, mantissa)
	return len(strings.TrimLeft(digits, "0")) <= exactDigits
}

// leastDigits is how many digits Unix milliseconds have from 1973 on. Numbers with fewer,
// but for the ten of Unix seconds, are something else, such as the days of a spreadsheet.
const leastDigits = 12

// timeLayouts are the forms of a time without an offset that are read, as UTC.
var timeLayouts = []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"}

// timeText is a time as the service takes it: Unix seconds, which have ten digits, become
// milliseconds, and a time without an offset is UTC. Another text stays, and is judged
// by the service.
func timeText(cell string) string {
	if len(cell) == 10 && isDigits(cell) {
		return cell + "000"
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, cell); err == nil {
			return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
		}
	}
	return cell
}
