// Package shapes has the shapes that the key API and the console API share, of
// requests and of the records of package record.
package shapes
