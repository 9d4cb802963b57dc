// Package chaos runs a whole service of real processes - nodes of muster, Apache
// Kafka, ClickHouse - kills, freezes and cuts off parts of it under load, and
// checks after each round that nothing acknowledged was lost or counts twice.
//
// # A round
//
// Three loads act at once, through any node: workers post events in batches and
// one by one (package crash), people run through flows with webhooks and e-mails
// (package flowcrash), and probes post and read in small groups whose history is
// kept. They do so in two companies, whose accounts are of different partitions.
// Meanwhile faults happen, one of each kind before any comes again: a node,
// a broker or ClickHouse is killed and started again or frozen, a broker of three
// is stopped, connections are cut or stalled by proxies. What is frozen or stalled
// may be so for longer than a session of Kafka's consumer groups lasts.
//
// Then everything is well again, and whatever has no answer yet is asked for until
// it has. A round ends once nothing runs any more.
//
// # What is checked after each round
//
//   - Segments, profiles and history, ClickHouse's rows themselves, hold every
//     acknowledged event once, one that was given up at most once, and no other; a
//     person's profile is the one that was first answered (L1, L2).
//   - Flows: everybody is enrolled as the events say, took the path that the
//     definition says, and what the enrolments intend arrived, each under one id;
//     an id came again only after a fault of its receiver or of the round (F1).
//   - Every node gives the same answers.
//   - The probes' history is linearizable (package porcupine): there is one order
//     of all posts and reads, within the times they took, in which each key counts
//     once and each count is right.
//
// The seed decides what happens in which round; the moments are the machine's.
package chaos
