// Package fieldcolumns keeps the values of some fields of all profiles of an account in
// memory, apart from the profiles: a number for each profile, and each different value once.
// A condition on such a field is judged once for each value that there is, where a scan
// decodes every profile for it.
//
// A table is made by a scan, beside a question that scans anyway, and is not state: it may
// be dropped at any time and is never written down. It is exact when no profile has changed
// since: writers mark the profiles that they change ([Tables.Mark]), and readers have the
// changed ones read again ([Tables.Refresh]).
package fieldcolumns
