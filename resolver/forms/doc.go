// Package forms has the signup forms of an account: what they ask for, how often they were
// seen and sent each day, and the submissions that wait until the person confirms them.
//
// A form is public: anybody can send it with the address of anybody. So a submission that
// concerns a person on file, or that must be confirmed by the form's own rules, changes
// nothing before the owner of the address follows the link of a message. Until then it is
// held (held.go): an entity for each profile has its submissions, and they end after a week.
//
// Forms and their days are tables of entities (forms.go, days.go). A submission leads to a
// profile and changes it, so package signup carries it out; its
// arguments are here (submit.go).
package forms
