// Package refusal counts refused requests by surface and reason, and logs some of
// them.
//
// A handler that refuses calls [Mark] or [MarkStatus] where the status does not say
// so: Surface A answers most failures with 200, Surface B with 202. Everything else
// is known by its status. [Watch] stands before all handlers. It gives each refused
// request an id, which the answer carries as X-Request-Id and the log line as
// request. Ids of clients are not taken over: a client's text has no place in the
// log. A line holds no path, address, header or body, since these are secrets or
// personal data.
//
// A request that another node refused has its id already and was counted there.
package refusal
