//go:build !headless

package main

import (
	_ "embed"
	"fmt"
	"os"

	"firesteel/core/demo"
	"firesteel/core/engine"
	"firesteel/ui/window"
)

//go:embed Icon.png
var icon []byte

var demoPair = demo.Folders

var showWindow = func() int {
	err := window.Run(window.Options{
		Open:     func() (window.Core, error) { return engine.Start() },
		DemoPair: demoPair,
		Version:  Version,
		Icon:     icon,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "firesteel:", err)
		return 1
	}
	return 0
}
