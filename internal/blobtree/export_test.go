package blobtree

// SumLine is what stands behind a manifest.
func SumLine(b []byte) string { return sumLine(b) }

// DecodeManifest is decodeManifest.
func DecodeManifest(b []byte) (*Manifest, error) { return decodeManifest(b) }
