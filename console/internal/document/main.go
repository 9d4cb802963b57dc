// Command document prints the OpenAPI document of the service, which the page's types
// are made from: `go run ./console/internal/document > openapi.json`.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/api/openapi"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
)

func main() {
	groups := slices.Concat(new(keyapi.API).Operations(), new(ingest.Handler).Operations(), new(api.API).Operations(), new(keyapi.API).SessionOperations())
	document, err := operation.Document(append(groups, openapi.Operations()))
	if err == nil {
		_, err = os.Stdout.Write(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}
