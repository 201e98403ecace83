// Package window is Firesteel's window: two models, three sliders, memory, and a
// conversation. It talks to what runs models through one interface, Core, and changes
// nothing on the screen except on Fyne's thread.
package window

import (
	"context"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/library/found"
	"firesteel/core/quantize"
)

// Core is what the window asks of what runs models; *engine.Engine is one. Every method may
// be called from any goroutine; Load, Unload, Generate, Quantize, Tau, Recalibrate and Close
// take as long as they take and are never called on Fyne's thread.
type Core interface {
	Load(ctx context.Context, r engine.LoadRequest) (engine.Loaded, error)
	Unload(ctx context.Context) error
	Loaded() engine.Loaded
	Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error)
	Memory() engine.Memory
	// Quantize follows a plan; texts go on between its steps.
	Quantize(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error)
	// Tau measures how many words a check gives, on average, with the drafter in drafterDir beside
	// the loaded target.
	Tau(ctx context.Context, drafterDir string, prompts []string, tokens int) (float64, error)
	// Recalibrate goes by what the folder holds of the loaded pair.
	Recalibrate(ctx context.Context, dir string) (engine.Loaded, error)
	// Do runs a piece of a job's work between texts.
	Do(ctx context.Context, f func() error) error
	Device() string
	OnGPU() bool
	Close() error
}

// Options are what the window needs from outside. Open and DemoPair are called once, in the
// background, after the window is on the screen.
type Options struct {
	// Open starts what runs models. The window closes it.
	Open func() (Core, error)
	// DemoPair returns the folders of the pair that comes with the app. nil: there is none.
	DemoPair func() (target, drafter string, err error)
	// Found finds the models that are on the computer already. nil: none are looked for.
	Found *found.Finder
	// SettingsPath is the file that the window remembers things in; "" is the usual one.
	SettingsPath string
	Version      string // shown under About; may be empty
	Icon         []byte // PNG; may be nil
}
