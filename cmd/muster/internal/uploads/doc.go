// Package uploads keeps the CSV files that people upload, and brings their rows in.
//
// # Background
//
// An upload must survive a crash of the server, must not store a row twice, and must not
// keep live events waiting. So the file is stored before anything of it is imported, and
// one goroutine works off one file at a time, for at most half of the time.
//
// # How data is organised
//
// Each upload is a directory uploads/<account>/<id> of the data directory, which only
// the owner of the process may read: upload.json is what is known of it, content.csv the
// file, refused.jsonl the rows that were refused so far, and refused.csv the same with
// their cells once it has ended. The content is removed then. A start compares sizes, and an
// import the checksum of the content when it begins or continues: see recover.go.
//
// Rows are worked off in windows. What a window came to is durable before the next one
// begins; after a crash one window may be done again, which changes nothing: the state
// takes a row of a file of events once, and a person who was made is found.
//
// # People and events
//
// A row of people becomes the commands that POST /contacts and PATCH /contacts/{id} are
// made of (people.go), a window of events one import record, as of muster import
// (events.go).
//
// Erased people leave the files as well, see erased.go. A node learns of erasures in the
// accounts that it owns; files of others go after a day, see away.go.
package uploads
