// Package reach says whom messages can be sent to. It has the rules by which a profile's
// document says so for each channel, and sets of profiles that follow from them: those who
// can be sent to, and those who have a status. The sets let previews, campaigns and lists
// answer without reading documents.
//
// Like the index of profiles the sets follow from the documents alone: a set changes with
// the document, the state's hash compares both ([Sets.Differ]), and a checkpoint without
// them gets them when it is loaded ([Sets.Clear], then [Sets.Keep] for each document).
package reach
