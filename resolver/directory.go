package resolver

// App is what Surface B needs to know of an account to let a request in.
type App struct {
	// Account is the number of the account.
	Account uint64
	// SecretHash is the SHA-256 of the App Secret.
	SecretHash [32]byte
	// Active is false while the account is deactivated.
	Active bool
	// IgnoreUnknownFields is the account's setting of that name.
	IgnoreUnknownFields bool
}
