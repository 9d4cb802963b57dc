// Package orders has what an account's people bought: orders by the standard events
// order_placed and order_refunded, the newest cart of each person by cart_updated, and which
// message an order is attributed to.
//
// # What an order is
//
// An event with the documented properties is an order (read.go); any other is an event like all
// others. An order is known by its order_id: the same id again is a repeat, whatever else the
// event says. A refund takes off what is left of its order at most. One that comes before its
// order waits for it, so that the order in which the two arrive changes no figure. Several wait
// each with its own time and profile: the text of the order has them, and the list of each of
// these profiles has the order.
//
// Each change of revenue becomes an event of the service's own on the profile that has the
// order, [EventRevenue]. Its amount is negative for a refund. So the sum of its amounts, which
// conditions of segments and history compute, is the revenue that is kept here.
//
// # Attribution
//
// An order belongs to the newest click or open of a message within the account's windows
// before it (touches.go). This is decided by the record that has the order, from the touches
// that came before it in the log, and never again.
//
// # What is kept
//
// Of each profile, texts in the store that are not kept in memory: a record with totals,
// touches and the cart, and a list of its orders. Each order is a text of its own, found by a
// hash of its id. A set of the account has the profiles with a record. Of the account, tables
// in memory: figures by day and currency, and by campaign or step of a flow and currency
// (figures.go). A merge adds up. An erasure removes what is kept of the profile; figures of the
// account name no person, and stay.
//
// Amounts are whole numbers of ten-thousandths ([Amount]). Currencies are never added up.
package orders
