// Command muster is the one binary: it serves, imports past events, and
// manages a server.
//
//	muster serve  [--data DIR] [--listen HOST:PORT] [--credentials FILE] …
//	muster import --data DIR | --to URL --credentials FILE [--format jsonl|csv] FILE…
//	muster admin  --to URL | --credentials FILE NOUN VERB …
//	muster health [--listen HOST:PORT] [--alive]
//
// Here are flags, wiring, start and stop, and nothing else. What commands are made
// of is in internal: cli reads flags and environment, engine opens a data
// directory, importer brings in files.
package main
