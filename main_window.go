//go:build !headless

package main

import (
	_ "embed"
	"fmt"
	"os"

	"firesteel/core/demo"
	"firesteel/core/engine"
	"firesteel/core/library/found"
	"firesteel/ui/window"
)

//go:embed Icon.png
var icon []byte

var demoPair = demo.Folders

var showWindow = func() int {
	home, _ := os.UserHomeDir() // without one, only the places that variables name are looked into
	err := window.Run(window.Options{
		Open:     func() (window.Core, error) { return engine.Start() },
		DemoPair: demoPair,
		Found:    found.New(home, os.Getenv),
		Version:  Version,
		Icon:     icon,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "firesteel:", err)
		return 1
	}
	return 0
}
