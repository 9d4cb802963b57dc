package state

// ApplyVersion is the version of the state machine's rules. It is part of the
// state: a build refuses a state made under newer rules.
const ApplyVersion = 22
