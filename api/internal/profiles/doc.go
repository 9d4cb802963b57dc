// Package profiles has the calls about people: their profiles, searches and timelines, what
// they consented to, their devices, the lists that they are on, and erasures.
package profiles
