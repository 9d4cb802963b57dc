// Package trackingapi lets the calls of Segment's SDKs in, and of those that speak as they
// do.
package trackingapi
