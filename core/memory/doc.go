// Package memory says how much memory there is and whether a pair of models fits into it. The
// readings come from the system; the bill and the verdict are plain arithmetic. All sizes are
// bytes; people are shown memory in units of 2³⁰ called GB, as macOS does.
//
// Everything may be called from any goroutine.
package memory
