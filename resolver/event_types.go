package resolver

import (
	"strings"
	"unicode/utf8"
)

// maxTypeDescription bounds the description of an event type, in characters.
const maxTypeDescription = 500

// CatalogUpdate changes what people are told of an event type. What is nil stays.
type CatalogUpdate struct {
	Key         string  `json:"id"`
	Description *string `json:"description,omitempty"`
	Hidden      *bool   `json:"hidden,omitempty"`
}

func (m *Machine) updateEventType(cmd *command, c CatalogUpdate) *Refusal {
	a := cmd.account
	t := a.types[c.Key]
	if t == nil {
		return notFound("id", "there is no event type with the key %s", c.Key)
	}
	if c.Description != nil {
		text := strings.TrimSpace(*c.Description)
		if utf8.RuneCountInString(text) > maxTypeDescription {
			return invalid("description", "description must have at most %d characters", maxTypeDescription)
		}
		t.Description = text
	}
	if c.Hidden != nil {
		t.Hidden = *c.Hidden
	}
	a.touch(t)
	cmd.reply(t)
	return nil
}
