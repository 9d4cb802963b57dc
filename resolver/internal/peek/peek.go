// Package peek lets tests of packages that run machines look at what a machine keeps to
// itself, and set bounds that are no options. Package resolver and its features fill it in;
// nothing but tests reads it. A machine is a *resolver.Machine and a view a *resolver.View,
// held still by the caller.
package peek

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/dueset"
)

// Flow is a flow with what memory has of it beside what is saved and counted. All of it
// follows from what is stored. The sets are those in use: they must be left as they are.
type Flow struct {
	State  any             // an automation.FlowState
	Known  *roaring.Bitmap // profiles of which something is stored
	Ever   *roaring.Bitmap // profiles with an enrolment
	Active *roaring.Bitmap // profiles with one in progress
	Queued *roaring.Bitmap // profiles still to be enrolled since the flow went live
	Timers *dueset.Set     // when enrolments are due
	Dates  *dueset.Set     // when the date trigger is due
}

var (
	// Flows lists the flows of an *automation.State by number, deleted ones too.
	Flows func(flows any) []Flow
	// Deferred calls fn for the deferred triggers of an *automation.State in order, with the
	// numbers of the flows in which the profile is to be enrolled. It returns the number of
	// the next entry, 0 when there is none.
	Deferred func(flows any, fn func(ordinal uint32, flows []uint32)) (next uint64, err error)
	// StepsLeft is how many steps of flows the last record of an *automation.Runner might
	// still have carried out.
	StepsLeft func(runner any) int

	// EmailNames lists the names of e-mails that a machine's accounts hold, and those that
	// the directory in it has, as text.
	EmailNames func(machine any) (held, directory []string)
	// EnrolmentsPerRecord bounds how many enrolments a record begins from now on.
	EnrolmentsPerRecord func(machine any, n int)
	// Account is the *account.State that a view is of.
	Account func(view any) any
)
