// Package automation has the calls about flows: drafts, their publication and dry runs, and the
// enrolments of profiles.
package automation
