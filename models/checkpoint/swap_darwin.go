package checkpoint

import "golang.org/x/sys/unix"

// swap lets two paths change places in one step.
func swap(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
