// Package editor measures the console's requests while a user types: searches of people,
// suggestions, and previews of definitions that are being written. It fills a real server
// and asks over HTTP, one question at a time.
package editor
