//go:build !headless

package main

import "firesteel/core/demo"

var (
	demoPair   = demo.Folders
	showWindow func() int
)
