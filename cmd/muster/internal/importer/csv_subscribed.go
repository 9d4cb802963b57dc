package importer

import (
	"fmt"
	"strings"
)

// The columns that say whether a person is subscribed. They stand for themselves, outside
// of the person's JSON.
const (
	columnSubscribed   = "subscribed"
	columnUnsubscribed = "unsubscribed"
)

// saysSubscribed reports whether a column says whether a person is subscribed.
func saysSubscribed(name string) bool { return name == columnSubscribed || name == columnUnsubscribed }

// subscribedColumn is where a file of people says whether they are subscribed.
type subscribedColumn struct {
	name  string // "" where it does not
	place int
}

// read reads the column's cell of a row: nil where it is empty.
func (c *subscribedColumn) read(cells []string) (subscribed *bool, fault string) {
	if c.name == "" {
		return nil, ""
	}
	text := strings.TrimSpace(cells[c.place])
	said := false
	switch strings.ToLower(text) {
	case "":
		return nil, ""
	case "true", "yes", "1":
		said = true
	case "false", "no", "0":
	default:
		return nil, fmt.Sprintf("%[1]s %.100[2]q must be true or false, yes or no, 1 or 0, or empty; mend the row, or map the column to attributes.%[1]s", c.name, text)
	}
	said = said == (c.name == columnSubscribed)
	return &said, ""
}
