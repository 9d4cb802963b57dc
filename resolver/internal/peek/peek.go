// Package peek lets tests of packages that run machines look at what a machine keeps to
// itself, and set bounds that are no options. Package resolver fills it in; nothing but
// tests reads it. A machine is a *resolver.Machine and a view a *resolver.View, held still
// by the caller.
package peek

var (
	// EmailNames lists the names of e-mails that a machine's accounts hold, and those that
	// the directory in it has, as text.
	EmailNames func(machine any) (held, directory []string)
	// EnrolmentsPerRecord bounds how many enrolments a record begins from now on.
	EnrolmentsPerRecord func(machine any, n int)
	// Profiles counts the profiles of a view's account that are not merged or erased, as
	// segments count them.
	Profiles func(view any) uint64
	// NextDue is the next instant (Unix ms) at which a segment of a view's account changes
	// because time passes; ok is false when there is none.
	NextDue func(view any) (ms int64, ok bool)
)
