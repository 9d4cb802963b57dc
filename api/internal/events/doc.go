// Package events has the calls about events: the catalog of event types and of the attributes
// of profiles, and events as they come.
package events
