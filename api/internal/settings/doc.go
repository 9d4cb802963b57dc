// Package settings has the calls about the settings of an account, its sender domains and its sources of
// events.
package settings
