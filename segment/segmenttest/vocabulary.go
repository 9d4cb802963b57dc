package segmenttest

import "github.com/musterhq/muster/segment"

// BaseMs is the instant everything happens around: 2024-03-15T12:00:00Z.
const BaseMs = 1_710_504_000_000

var (
	eventTypes  = []string{"item_purchased", "page_viewed", "signup"}
	listIDs     = []string{"lst_news", "lst_vip", "lst_'quoted'"}
	segmentIDs  = []string{"seg_a", "seg_b", "seg_gone"}
	channels    = []string{"email", "sms", "push", "whatsapp", "im", "in_app"}
	blocks      = []string{segment.SuppressionPending, segment.SuppressionPending, segment.SuppressionBounced, segment.SuppressionComplained, segment.SuppressionByAccount}
	deviceKinds = []string{segment.DeviceWebPush, segment.DeviceFCM, segment.DeviceAPNs}

	// windows are widths in days as people write them, with their
	// milliseconds.
	windows = []struct {
		days string
		ms   int64
	}{
		{"1", 86_400_000}, {"7", 604_800_000}, {"7.0", 604_800_000}, {"3e1", 2_592_000_000},
		{"0.5", 43_200_000}, {"1.5", 129_600_000}, {"0.00000002", 2}, {"1.157407e-8", 1},
		{"365.25", 31_557_600_000}, {"36500", 3_153_600_000_000},
	}

	numbers = []string{
		"0", "-0", "0.0", "1", "1.0", "1e0", "10e-1", "2", "3", "10", "50", "50.0", "5e1", "0.5e2", "-1", "-50",
		"0.1", "0.2", "0.3", "0.30000000000000004", "99.99", "19.999999", "1E2",
		// Ties and near ties at the seventh decimal.
		"0.0000005", "0.0000015", "0.0000025", "-0.0000005", "-0.0000015", "5e-7", "15e-7", "0.00000050000000000000004",
		"1.0000005", "1.0000015", "2.5000005", "0.9999995", "1.00000049999", "12345.6789125", "1e-7", "-1e-7", "5e-324",
		"100000.0000005", "99999999.1234565", "8388608.0000005",
		// Around what aggregates leave out, and beyond.
		"999999999999", "999999999999.9999", "-999999999999.9999", "1000000000000", "1e12", "-1e12", "1000000000000.0001",
		"1e300", "-1e300", "1.7976931348623157e308",
		// Where float64 stops telling integers apart.
		"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
	}
	// commonNumbers are drawn more often, so that sums meet thresholds.
	commonNumbers = []string{"1", "1.0", "2", "10", "50", "5e1", "0.1", "0.2", "-1", "0.0000005", "0.0000015", "0"}

	texts = []string{
		"", "a", "b", "ab", "abc", "A", "a b", "10", "50", "1", "true", "false", "null", "0.0",
		"é", "e\u0301", "größe", "GRÖSSE", "日本", "😀", "\uffff", "it's", `say "hi"`, `back\slash`, "line\nbreak", "tab\t",
		"\u0001", "%", "_", "a%", "a_b", "$.a", "[]", "{}", "--", "\u00a0", " a", "a ",
	}
	commonTexts = []string{"a", "b", "ab", "abc", "10"}

	// times are strings that are times or nearly so, beside those drawn around
	// the base.
	times = []string{
		"2024-03-15", "2024-03-14", "2024-02-29", "2024-03-15T12:00:00Z", "2024-03-15T12:00:00.000Z",
		"2024-03-15T12:00:00.0009Z", "2024-03-15T11:59:59.999999999Z", "2024-03-15T12:00:00.001Z",
		"2024-03-15T14:00:00+02:00", "2024-03-15T06:30:00-05:30", "2024-03-16T11:59:00+23:59",
		"0001-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-23:59",
		"1969-12-31T23:59:59.9999Z", "1970-01-01T00:00:00Z", "1582-10-10",
		// None of these is a time.
		"2023-02-29", "2024-13-01", "2024-00-10", "2024-03-00", "0000-01-01", "2024-03-15T24:00:00Z",
		"2024-03-15T12:60:00Z", "2024-03-15T12:00:60Z", "2024-03-15 12:00:00Z", "2024-03-15t12:00:00z",
		"2024-03-15T12:00:00", "2024-03-15T12:00Z", "2024-03-15T12:00:00.Z", "2024-03-15T12:00:00.1234567891Z",
		"2024-03-15T12:00:00+24:00", "2024-03-15T12:00:00+0200", "2024-3-15", "24-03-15", "2024-03-15Z",
		"2024-03-15\n", " 2024-03-15", "+2024-03-15", "2024-03-15T12:00:00,5Z", "２０２４-03-15",
	}

	emails  = []string{"jo@example.com", " Jo@Example.COM ", "ÄNNE@example.de", "änne@example.de", "ann@shop.example"}
	phones  = []string{"+49 170 1234", "+491701234", "0170/1234", "(+1) 555-0100", "1555 0100"}
	ids     = []string{"u1", "U1", "u2", "10", "ü"}
	names   = []string{"Jo", "jo", "Ann", "Änne", "O'Neil", " "}
	domains = []string{"EXAMPLE.com", ".de", "@", "jo", "170", "555", "u", "o"}
)

// property is a property of events with what it mostly holds.
type property struct {
	path string
	kind segment.ValueKind // 0 for anything
	time bool
}

var properties = []property{
	{path: "value", kind: segment.ValueNumber},
	{path: "value", kind: segment.ValueNumber},
	{path: "price", kind: segment.ValueNumber},
	{path: "name", kind: segment.ValueString},
	{path: "tags", kind: segment.ValueString},
	{path: "when", kind: segment.ValueString, time: true},
	{path: "flag", kind: segment.ValueBool},
	{path: "any"},
	{path: "nested.a", kind: segment.ValueNumber},
	{path: "nested.b.c", kind: segment.ValueString},
	{path: "nested"},
	{path: "größe", kind: segment.ValueNumber},
	{path: `it's "q"`, kind: segment.ValueNumber},
	{path: "$x", kind: segment.ValueString},
	{path: "*", kind: segment.ValueNumber},
	{path: "tags[0]", kind: segment.ValueString},
	{path: "tags.0", kind: segment.ValueString},
	{path: `back\slash/tilde~`, kind: segment.ValueBool},
	{path: "missing"},
}
