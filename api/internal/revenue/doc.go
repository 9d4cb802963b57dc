// Package revenue has the console's calls about orders: those of a person, one by its id, and
// what the account takes in by day, and by campaign and step of a flow.
package revenue
