// Package foreign runs programs of others in tests: it installs them once, in the user's
// cache directory, by their lock files.
package foreign
