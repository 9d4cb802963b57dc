package eventtypes

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment"
)

// The names of commands. They are in the log: never change the meaning of one.
const (
	CommandDefine = "catalog.define"
	// CommandUpdate describes an event type, or hides it.
	CommandUpdate = "catalog.update"
	// CommandName names event types that have been seen after the names that
	// applications give them.
	CommandName = "catalog.name"
)

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandDefine: feature.Do((*State).define),
	CommandUpdate: feature.Do((*State).update),
	CommandName:   feature.Do((*State).name),
}

// Define adds an event type by its name.
type Define struct {
	Name string `json:"name"`
}

// Update changes how the catalog describes an event type. What is nil stays.
type Update struct {
	Key         string  `json:"id"`
	Description *string `json:"description,omitempty"`
	Hidden      *bool   `json:"hidden,omitempty"`
}

// Names gives event types that have been seen the names that they have in the
// application that sends them. A type that has a name, or is not known, stays as it is.
type Names struct {
	Types []Name `json:"types"`
}

// Name is an event type and its name in an application.
type Name struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// MaxNames is how many event types one command names.
const MaxNames = 1000

// maxDescription bounds the description of an event type, in characters.
const maxDescription = 500

func (s *State) define(tx *feature.Tx, c Define) *refuse.Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	key, ok := segment.SnakeCase(c.Name)
	if !ok {
		return refuse.Invalid("name", "name must have at least one of the letters a to z or a digit: the key is made of them")
	}
	if t := s.types[key]; t != nil && t.Name != "" {
		return &refuse.Refusal{Code: "conflict", Field: "name", Message: fmt.Sprintf("name: the event type %s is defined already", key)}
	}
	t := s.findOrAdd(key)
	if t == nil {
		return refuse.AtLimit("name", "this account has %d event types, the most it can have", maxTypes)
	}
	t.Name = strings.TrimSpace(c.Name)
	s.touch(t)
	tx.Reply = t
	return nil
}

func (s *State) update(tx *feature.Tx, c Update) *refuse.Refusal {
	t := s.types[c.Key]
	if t == nil {
		return refuse.NotFound("id", "there is no event type with the key %s", c.Key)
	}
	if c.Description != nil {
		text := strings.TrimSpace(*c.Description)
		if utf8.RuneCountInString(text) > maxDescription {
			return refuse.Invalid("description", "description must have at most %d characters", maxDescription)
		}
		t.Description = text
	}
	if c.Hidden != nil {
		t.Hidden = *c.Hidden
	}
	s.touch(t)
	tx.Reply = t
	return nil
}

func (s *State) name(_ *feature.Tx, c Names) *refuse.Refusal {
	if len(c.Types) > MaxNames {
		return refuse.Invalid("types", "types must have at most %d entries", MaxNames)
	}
	for _, named := range c.Types {
		name := clip.Valid(strings.TrimSpace(named.Name), refuse.MaxNameBytes)
		if t := s.types[named.Key]; t != nil && t.Name == "" && name != "" {
			t.Name = name
			s.touch(t)
		}
	}
	return nil
}
