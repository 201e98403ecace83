// Package smalldisk makes disks for tests that are soon full.
package smalldisk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// New mounts a disk of so many bytes, as in "2m", for as long as the test takes, and returns its
// folder. Only root may; for others the test is skipped.
func New(t *testing.T, bytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("a small disk can't be made here (%v): what happens when a disk is full was not tried", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
