// Package library knows model folders from outside: what a folder holds, whether it can be
// loaded, and which target and drafter belong together. It reads configuration and file headers,
// never weights, and writes nothing. Everything may be called from any goroutine.
//
// Failures to understand a folder are *checkpoint.Error values; two folders that do not belong
// together are a *PairError.
package library
