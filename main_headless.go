//go:build headless

package main

// The headless build has no window and carries no models.
var (
	showWindow func() int
	demoPair   func() (target, drafter string, err error)
)
