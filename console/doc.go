// Package console is the web console: a page for analysts, marketers and developers
// over the console API.
//
// Its sources are in web; dist is what they are built to, committed and embedded, so
// that Go alone builds a binary with the page. [Register] serves it below /console;
// every path of a screen answers the same document, which finds the screen itself.
// Nothing is loaded from other hosts, and the headers forbid it. README.md tells how
// to change the page.
package console
