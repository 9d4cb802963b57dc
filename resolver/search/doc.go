// Package search finds profiles by the beginnings of their identifiers and names, and lists
// them in an order, page by page. It has the index of profiles (index.go), which follows
// from their documents, and the searches ([Search]), which read the index, documents and
// headers of one account at one state. It changes nothing but the index.
package search
