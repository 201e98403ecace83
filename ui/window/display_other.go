//go:build !linux

package window

import "io"

// openDisplay says whether a window can be opened. Here it always can.
func openDisplay() (io.Closer, error) { return io.NopCloser(nil), nil }
