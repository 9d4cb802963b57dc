package orders

// The versions of the state machine's rules from which on a rule holds.
const (
	rulesProblems   = 25 // a problem of a total, a currency or items is told apart
	rulesCurrencies = 25 // a currency is a code of ISO 4217, and not any three letters
	rulesQuantities = 25 // quantities are bounded like amounts
	rulesCarts      = 25 // a cart needs no items and may be empty; any order_placed follows it
	rulesTouches    = 25 // earlier touches of a source are kept
)
