package shape

// Shapes that more than one surface has.

// Geo is where a person is.
func Geo(about string) *Schema {
	return FreeObject(Pairs("country", "DE", "city", "Berlin"), "Where the person is. "+about)
}

// Attributes are a person's attributes.
func Attributes(about string) *Schema {
	return FreeObject(Pairs("plan", "pro", "seats", 3), "The person's attributes, of your own. "+about)
}

// ContentVersion names a saved content.
func ContentVersion() *Schema {
	return Text("5f0c3a9be21d7740", "Names the content: send it as `if_version` when you save over it.")
}

// NextCursor is the cursor that a page of a list ends with.
var NextCursor = Text("BBgYAAAAAAAA", "Cursor of the next page: send it as `cursor`. Absent on the last page.")
