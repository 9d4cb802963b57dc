// Package retail converts the UCI "Online Retail" data set (Chen, Sain, Guo
// 2012) to JSON lines for `muster import`: a year of a real shop's orders.
//
// Every row that names a customer becomes one event in the row's order:
// item_purchased, or item_returned when the invoice number starts with C.
// external_id is the customer's number, geo.country the country, and value is
// Quantity × UnitPrice computed in decimals, so that sums come out exactly. A
// return's quantity, and thus its value, is negative, as in the file. The file
// has times without a zone; they are taken as UTC. Rows without a customer are
// counted and left out. Repeated rows are kept: they are real.
package retail
