package importer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// csvRows turns the rows of a CSV file into events. The first row names the
// columns.
type csvRows struct {
	in      *csv.Reader
	bounded *boundedReader
	columns int
	root    []*csvField
	buf     bytes.Buffer
	fault   string   // why the row at hand is no event
	cells   []string // of the row at hand; the next row takes their place
	// people reports that the rows are people, not what they did; eventType is the event type
	// of files that have no column of it.
	people    bool
	eventType string
	// subscribed is of people.
	subscribed subscribedColumn
}

// csvField is a member of the event: a cell, or an object of members.
type csvField struct {
	name    string
	column  int // -1 for an object
	kind    cellKind
	members []*csvField
}

// cellKind says what a cell may be.
type cellKind int

const (
	textCell    cellKind = iota // always a string
	timeCell                    // digits are Unix milliseconds, else a string
	freeCell                    // number, true or false if it is one, else a string
	numberCell                  // a number, or the row is refused
	booleanCell                 // true or false, or the row is refused
)

// The columns outside of properties., attributes. and geo.
var csvColumns = map[string][]string{
	"event_type":      {"event_type"},
	"timestamp":       {"timestamp"},
	"idempotency_key": {"idempotency_key"},
	"email":           {"user", "email"},
	"external_id":     {"user", "external_id"},
	"phone":           {"user", "phone"},
	"first_name":      {"user", "first_name"},
	"last_name":       {"user", "last_name"},
}

var errRowTooLong = fmt.Errorf("a row is longer than %d bytes; close its quotation marks", maxRowBytes)

func newCSV(r io.Reader, o CSVOptions) (*csvRows, error) {
	c, header, err := openCSV(r)
	if err != nil {
		return nil, err
	}
	c.people, c.eventType = o.People, o.EventType
	return c, c.setColumns(header, o)
}

// openCSV reads the first row, which names the columns.
func openCSV(r io.Reader) (c *csvRows, header []string, err error) {
	b := &boundedReader{r: r, left: maxRowBytes}
	c = &csvRows{in: csv.NewReader(b), bounded: b}
	c.in.ReuseRecord = true
	c.in.FieldsPerRecord = -1
	header, err = c.in.Read()
	if err == io.EOF {
		return nil, nil, errors.New("the file is empty; its first row must name the columns")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the first row, which names the columns: %w", err)
	}
	c.columns = len(header)
	return c, header, nil
}

func (c *csvRows) setColumns(header []string, o CSVOptions) error {
	seen, given := map[string]bool{}, map[string]bool{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		given[name] = true
		if to, ok := o.Map[name]; ok {
			if name = to; name == "" {
				continue // left out
			}
		}
		if seen[name] {
			return fmt.Errorf("column %q stands twice in the first row; remove one", name)
		}
		seen[name] = true
		if c.people && saysSubscribed(name) {
			if c.subscribed.name != "" {
				return errors.New("columns subscribed and unsubscribed both say whether a person is subscribed; leave one of them out")
			}
			c.subscribed = subscribedColumn{name: name, place: i}
			continue
		}
		path, kind, err := columnPath(name)
		if err == nil && c.people && (len(path) == 1 || path[0] == "properties") {
			err = errors.New("people have no such column; leave it out, or map it to attributes.x")
		}
		if kind == freeCell && i < len(o.found) {
			kind = o.found[i]
		}
		if declared, ok := o.Types[name]; ok && err == nil {
			if kind == timeCell || path[0] != "properties" && len(path) < 3 && declared != "text" {
				return fmt.Errorf("--columns: %s has a type of its own; leave it out", name)
			}
			kind = cellKinds[declared]
		}
		if err == nil {
			c.root, err = addField(c.root, path, i, kind)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
	}
	for name := range o.Map {
		if !given[name] {
			return fmt.Errorf("--map: there is no column %q in the first row", name)
		}
	}
	for name := range o.Types {
		if !seen[name] {
			return fmt.Errorf("--columns: there is no column %q; use the names after --map", name)
		}
	}
	for _, name := range []string{"event_type", "timestamp"} {
		if !seen[name] && !c.people && (name != "event_type" || c.eventType == "") {
			return fmt.Errorf("there is no column %s; the first row must name the columns", name)
		}
	}
	if !seen["email"] && !seen["external_id"] && !seen["phone"] {
		return errors.New("there is no column email, external_id or phone; one of them must say who did it")
	}
	return nil
}

func columnPath(name string) ([]string, cellKind, error) {
	if path, ok := csvColumns[name]; ok {
		kind := textCell
		if name == "timestamp" {
			kind = timeCell
		}
		return path, kind, nil
	}
	path := strings.Split(name, ".")
	if len(path) < 2 || slices.Contains(path, "") {
		return nil, 0, errors.New("it is not known; columns are event_type, timestamp, idempotency_key, email, external_id, phone, first_name, last_name, properties.x, attributes.x and geo.x; --map NAME=FIELD says what another name stands for")
	}
	switch path[0] {
	case "properties":
	case "attributes", "geo":
		path = append([]string{"user"}, path...)
	default:
		return nil, 0, errors.New("it must be properties.x, attributes.x or geo.x")
	}
	return path, freeCell, nil
}

// addField puts a column into the tree of the event's members.
func addField(fields []*csvField, path []string, column int, kind cellKind) ([]*csvField, error) {
	i := slices.IndexFunc(fields, func(f *csvField) bool { return f.name == path[0] })
	if len(path) == 1 {
		if i >= 0 {
			return nil, errors.New("another column has members of it")
		}
		return append(fields, &csvField{name: path[0], column: column, kind: kind}), nil
	}
	if i < 0 {
		i = len(fields)
		fields = append(fields, &csvField{name: path[0], column: -1})
	} else if fields[i].column >= 0 {
		return nil, errors.New("another column is a value where this one needs an object")
	}
	var err error
	fields[i].members, err = addField(fields[i].members, path[1:], column, kind)
	return fields, err
}

func (c *csvRows) next(r *row) error {
	c.bounded.left = maxRowBytes
	cells, err := c.in.Read()
	var malformed *csv.ParseError
	switch {
	case err == nil:
	case errors.As(err, &malformed) && !errors.Is(err, errRowTooLong):
		*r = row{line: malformed.StartLine, fault: "the row is not valid CSV: " + malformed.Err.Error()}
		return nil
	default:
		return err
	}
	c.cells = cells
	line, _ := c.in.FieldPos(0)
	*r = row{line: line}
	if len(cells) != c.columns {
		r.fault = fmt.Sprintf("the row has %d cells, the first row names %d columns", len(cells), c.columns)
		return nil
	}
	c.buf.Reset()
	c.fault = ""
	c.object(c.root, cells)
	c.addEventType()
	said, fault := c.subscribed.read(cells)
	r.subscribed = said
	if c.fault == "" {
		c.fault = fault
	}
	if r.json = c.buf.Bytes(); c.fault != "" {
		r.json, r.fault = nil, c.fault
	}
	return nil
}

// addEventType gives the row at hand the event type of the file, if it has none.
func (c *csvRows) addEventType() {
	if c.eventType == "" {
		return
	}
	c.buf.Truncate(c.buf.Len() - 1)
	if c.buf.Len() > 1 {
		c.buf.WriteByte(',')
	}
	c.buf.WriteString(`"event_type":`)
	writeString(&c.buf, c.eventType)
	c.buf.WriteByte('}')
}

// object writes the members that have a value; it returns whether there was
// one, and writes nothing if not.
func (c *csvRows) object(fields []*csvField, cells []string) bool {
	start := c.buf.Len()
	c.buf.WriteByte('{')
	some := false
	for _, f := range fields {
		mark := c.buf.Len()
		if some {
			c.buf.WriteByte(',')
		}
		writeString(&c.buf, f.name)
		c.buf.WriteByte(':')
		if !c.value(f, cells) {
			c.buf.Truncate(mark)
			continue
		}
		some = true
	}
	if !some && start > 0 {
		c.buf.Truncate(start)
		return false
	}
	c.buf.WriteByte('}')
	return some
}

func (c *csvRows) value(f *csvField, cells []string) bool {
	if f.column < 0 {
		return c.object(f.members, cells)
	}
	cell := cells[f.column]
	if f.kind == timeCell && cell != "" {
		cell = timeText(cell)
	}
	boolean := cell == "true" || cell == "false"
	switch {
	case cell == "":
		return false
	case f.kind == numberCell && !isNumber(cell), f.kind == booleanCell && !boolean:
		if c.fault == "" {
			c.fault = fmt.Sprintf("%s is declared as %s, and the cell in column %d is none; declare it as text, or mend the row", f.name, map[cellKind]string{numberCell: "number", booleanCell: "boolean"}[f.kind], f.column+1)
		}
		return false
	case f.kind == timeCell && isDigits(cell) && len(cell) < leastDigits:
		if c.fault == "" {
			c.fault = fmt.Sprintf("timestamp %s is no Unix time, or one of 1970; write the date out as 2024-05-31 12:30:00 (a spreadsheet keeps dates as such numbers), or as Unix seconds or milliseconds", cell)
		}
		return false
	case f.kind == timeCell && isDigits(cell), f.kind == freeCell && (boolean || isNumber(cell)), f.kind == numberCell, f.kind == booleanCell:
		c.buf.WriteString(cell)
	default:
		writeString(&c.buf, cell)
	}
	return true
}

func isDigits(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }) < 0 && (s[0] != '0' || len(s) == 1)
}

// isLiteral reports whether a cell is a JSON number, true or false.
func isLiteral(s string) bool {
	if s == "true" || s == "false" {
		return true
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	// Both ends, because white space around a value is valid JSON too.
	return (s[0] == '-' || digit(s[0])) && digit(s[len(s)-1]) && json.Valid([]byte(s))
}

// writeString writes a string as JSON. Bytes that are not UTF-8 stay as they
// are, so that the row is refused for them and not changed in silence.
func writeString(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(b, "\\u%04x", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// boundedReader fails when more was read than one row may have.
type boundedReader struct {
	r    io.Reader
	left int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}
