// Package signup has the calls about signup forms: the forms, their figures by day, and the
// HTML with which a site embeds one. The pages of forms are in package links.
package signup
