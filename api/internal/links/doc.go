// Package links answers the links of messages: opens, clicks, unsubscribes, confirmations, and
// the page on which people choose topics and channels (preferences.go).
//
// It also answers the pages of signup forms, which anybody may open and send (forms.go).
//
// A token that the service signed says what a link is about (track.go). Opens and clicks
// are recorded at once, or wait in a bounded queue while the state is busy (track_queue.go).
package links
