package view

import "github.com/musterhq/muster/resolver/internal/peek"

// What tests of other packages may see of a view: see package peek.
func init() {
	peek.Account = func(view any) any { return view.(*View).a }
}
