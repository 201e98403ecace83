//go:build !linux && !darwin

package checkpoint

import "errors"

// swap cannot be done in one step here.
func swap(a, b string) error { return errors.ErrUnsupported }
