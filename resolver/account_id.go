package resolver

import "fmt"

// APIKeyPrefix begins every API key.
const APIKeyPrefix = "svc_live_"

// AppID is an account's public identifier on Surface B.
func AppID(account uint64) string { return fmt.Sprintf("app_%016x", account) }

// AccountID is an account's identifier.
func AccountID(account uint64) string { return fmt.Sprintf("acc_%016x", account) }

// ParseAppID reads the account's number out of an App ID.
func ParseAppID(appID []byte) (account uint64, ok bool) {
	const prefix = "app_"
	if len(appID) != len(prefix)+16 || string(appID[:len(prefix)]) != prefix {
		return 0, false
	}
	for _, c := range appID[len(prefix):] {
		switch {
		case '0' <= c && c <= '9':
			account = account<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			account = account<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return account, true
}
