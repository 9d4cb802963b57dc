package console

import "sync"

// InAppScript is the script that shows in-app messages on pages of customers. `make console`
// writes it with the console's own files. It must not be changed.
var InAppScript = sync.OnceValue(func() []byte {
	b, err := dist.ReadFile("dist/muster-inapp.js")
	if err != nil {
		panic("console: dist/muster-inapp.js is missing; run make console")
	}
	return b
})
