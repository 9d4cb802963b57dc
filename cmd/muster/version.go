package main

import "runtime/debug"

// release is the version that the build was given, by -ldflags "-X
// main.release=v0.1.0"; "" for a build from a checkout or a module, which Go knows the
// version of.
var release string

func version() string {
	if release != "" {
		return "muster " + release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "muster (unknown build)"
	}
	out := "muster " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			out += " " + s.Value
		}
	}
	return out
}
