// Package record has the forms of answers that the console and the calls of API
// keys share: the records of an account as JSON, and times, texts and objects
// as both write them.
package record
