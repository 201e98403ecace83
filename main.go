// Firesteel writes text on a person's own computer: a window, or commands without it.
package main

import (
	"os"

	"firesteel/core/engine"
	"firesteel/ui/command"
)

// Version is set when a release is built.
var Version = "0.1.0"

func main() {
	options := command.Options{
		Version:  Version,
		Open:     func() (command.Core, error) { return engine.Start() },
		DemoPair: demoPair,
		Window:   showWindow != nil,
	}
	args := os.Args[1:]
	if len(args) == 0 && showWindow != nil {
		os.Exit(showWindow())
	}
	os.Exit(command.Run(args, os.Stdin, os.Stdout, os.Stderr, options))
}
