package flows

// What [Parse] accepts at most.
const (
	// MaxBytes is the size of a definition's JSON, as given and in canonical form.
	MaxBytes = 1 << 20
	// MaxSteps is the number of steps.
	MaxSteps = 200
	// MaxTags is how many tags a profile has with those that flows add.
	MaxTags = 200

	maxNameBytes    = 200
	maxIDBytes      = 64 // of steps
	maxRefBytes     = 128
	maxEventBytes   = 1024 // room for a name that is no key yet
	maxFieldBytes   = 512
	maxFieldKeys    = 16
	maxOffsetDays   = 3650
	maxZoneBytes    = 64
	maxTimeBytes    = 64
	maxSubjectBytes = 998
	maxAddressBytes = 320
	// maxMailBytes is for body and text together, written as JSON: the message must
	// fit into the outbox with what started the flow.
	maxMailBytes = 200 << 10
	maxSMSBytes  = 4096

	maxTemplateName   = 512
	maxLanguageBytes  = 20
	maxHeaderType     = 20
	maxButtonType     = 20
	maxPushTitle      = 998
	maxPushBody       = 4096
	maxCollapse       = 32
	maxSeconds        = 100 * 365 * 86_400
	maxBranches       = 20
	maxWeight         = 1_000_000
	maxTagsGiven      = 50
	maxTagBytes       = 100
	maxAssignments    = 50
	maxValueBytes     = 16 << 10
	maxValueDepth     = 8
	maxPersonName     = 512
	maxPatchBytes     = 64 << 10
	maxURLBytes       = 2048
	maxHeaders        = 20
	maxHeaderName     = 128
	maxHeaderValue    = 1024
	maxCallBody       = 64 << 10
	maxTimeoutSeconds = 30
	maxAttempts       = 10

	defaultTimeoutSeconds = 10
	defaultAttempts       = 5
)
