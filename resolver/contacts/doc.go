// Package contacts has the contact part of an account's profiles: its lists with their
// members, consents and suppressions, and devices.
//
// Lists are entities. The rest is in the documents of profiles; beside them the account has
// sets of profiles by name, and the addresses of devices in its map of identifiers. A list's
// number stands in documents instead of its id, and is never given twice.
//
// Some lists are topics, which people see on their preference page (topics.go).
//
// Commands that make or change a contact lead to a profile by its identifiers, so the machine
// carries them out; their arguments are here (args.go), with what cannot be stored of them.
package contacts
