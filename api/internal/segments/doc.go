// Package segments has the calls about segments: saved definitions with their counts and
// members, previews and explanations, entries and exits.
package segments
