// Package jsonscan reads JSON text in place, strictly and in one pass.
//
// # Background
//
// A server that stores parts of the JSON it receives does not need a tree of
// it. It needs three things: to know that the text is JSON, to find the few
// members it understands, and to keep the free-form rest in one canonical
// form. [Scanner] does exactly these, position by position, over one []byte,
// without allocating.
//
// # Canonical text
//
// [Scanner.Value] answers a value's canonical text:
//
//   - no white space between tokens;
//   - strings in UTF-8; the quotation mark, the backslash and control
//     characters are escaped (\" \\ \b \f \n \r \t, else \u00xx with
//     lower-case digits), nothing else is;
//   - numbers as they were written, members in the order they were written.
//
// A value that already is in this form is answered as a part of the source,
// without a copy; any other is rewritten into a scratch buffer of the scanner.
// Canonicalising canonical text changes nothing.
//
// # Two kinds of bad
//
// Text that is not JSON (RFC 8259, including invalid UTF-8) is a
// [*SyntaxError]: the position returned is negative and [Scanner.Err] says
// where and why. Text that is JSON but that one cannot keep faithfully is a
// [Fault]: a key twice in one object, a number beyond float64, a lone surrogate,
// a NUL character, nesting or text beyond the limits. After a fault the scanner has
// still checked the rest of the value, so that the caller can continue behind it;
// [Scanner.Fault] holds it until [Scanner.ClearFault].
//
// # Bounds
//
// Nothing recurses. Containers deeper than the limit are checked with one bit
// of state per level. Duplicate keys are found in time linear in the number of
// keys, whatever the keys are.
package jsonscan
