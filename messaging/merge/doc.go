// Package merge fills merge tags in texts: subjects, HTML bodies, plain texts,
// JSON bodies of webhooks and links.
//
// # Grammar
//
//	tag      = "{{" ws ( path [ ws "|" ws default ] | string ) ws "}}"
//	path     = name { "." name }
//	name     = letter or "_" , then letters, digits, "_", "-"; an array index is a name of digits
//	default  = [ "default" ws ":" ws ] ( string | words )
//	string   = '"' … '"' or "'" … "'" with \" \' \\ inside
//	words    = text without quotes and braces, trimmed
//
// So {{first_name}}, {{ attributes.plan }}, {{first_name | default: "friend"}}
// and, shorter, {{first_name | friend}}. A tag that is unknown, missing or
// blank gives its default, without one nothing ([Template.Missing] finds such tags). {{"{{"}} writes two braces. In
// HTML the quotes may be written &quot; and in JSON \" because editors do that. Triple braces
// are refused: a value is never inserted unescaped.
//
// # Modes
//
// A text is parsed once for where it goes ([Mode]) and rendered many times. The
// author's text passes through byte for byte; values are escaped for the place
// each tag stands in, so that no value changes the structure around it:
//
//   - [Text]: as it is, without control characters other than line breaks and tabs.
//   - [Header]: additionally one line, for subjects and names.
//   - [HTML]: by context. Text and quoted attributes get character references;
//     in links a value at the start must be a relative, http, https, mailto, tel
//     or sms address (else it becomes "#"), after "?" or "#" it is
//     percent-encoded; in style only colours, lengths and names pass; in
//     application/json and ld+json scripts as in JSON. Elsewhere (in a tag's or
//     attribute's name, unquoted attributes, event handlers, other scripts) a
//     tag is a parse error that says what to write instead. Outlook's
//     conditional comments are read as the HTML they hold.
//   - [JSON]: inside a string as JSON escapes; outside one as a JSON value:
//     numbers, true, false and null as they are, all else quoted, blank as null.
//   - [URL]: a whole link; the rules of links above without character references.
//   - [Target]: likewise, and in the path a value is percent-encoded as in the query.
//
// # Bounds
//
// Texts of MaxTemplate bytes, MaxTags tags; a value counts up to MaxValue bytes
// and is cut there; a result above MaxOutput bytes is [ErrTooLarge].
package merge
