// Command bench measures and checks the real muster binary, and makes sample
// data. Its subcommands:
//
//	ingest  load a server over HTTP beside baseline servers: rates, latencies,
//	        CPU, memory, and whether each acknowledged event counts once
//	builds  load two builds of the server in turns and compare their rate and CPU
//	crash   kill a server under load again and again: nothing acknowledged may
//	        be lost or doubled
//	segments
//	        grow an account and measure the segment engine at each size, with
//	        every answer checked against SQL
//	cluster load nodes on Kafka and ClickHouse beside the bare clients of both,
//	        and move a partition of a million profiles
//	shop    write the history of a made-up shop as JSON lines
//	retail  convert the UCI Online Retail file to JSON lines
//
// README.md says how to repeat each figure. Servers are started as child
// processes on the loopback interface and stopped by their process id; every
// run is bounded in time.
package main
