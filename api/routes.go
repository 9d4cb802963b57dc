package api

// Route is a call that the API answers.
type Route struct {
	Method string
	// Path is behind [Prefix], or whole where it begins with /inbound/.
	Path string
	// Permission is what the caller must hold: a permission, or "none",
	// "signed-in" or "system-admin".
	Permission string
}

// Routes lists the calls that Register added, but for the links of messages.
func (a *API) Routes() []Route { return a.routes }

// name is the access as [Route.Permission] has it.
func (x access) name() string {
	switch x {
	case public:
		return "none"
	case signedIn:
		return "signed-in"
	case systemAdmin:
		return "system-admin"
	}
	return string(x)
}
