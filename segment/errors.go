package segment

import "github.com/musterhq/muster/internal/jsonform"

// DefinitionError says what is wrong with a definition, and where: Path is the
// JSON path of the fault from the definition's root, such as
// conditions[1].window.last_days, empty for the root itself; Reason continues a
// sentence that begins with the path: "must be …".
type DefinitionError = jsonform.Error
