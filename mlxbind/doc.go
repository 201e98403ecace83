// Package mlxbind is MLX for Go, through its C interface mlx-c. It is the only package with
// import "C" and knows nothing of models.
//
// # Thread
//
// MLX arrays and streams belong to the thread that made them. Init locks the calling
// goroutine to its OS thread; every other call must come from there, and NewScope panics
// elsewhere. Only the memory counters may be read from any thread.
//
// # Ownership
//
// Work happens in a Scope. Each operation is a method of the scope and returns an Array that
// the scope frees when it is closed. An array that must outlive the scope is taken out with
// Hold, and whoever holds it frees it with Free.
//
// # Errors
//
// An operation returns only its Array. The scope remembers the first error and later
// operations on it do nothing; Eval and the reading methods return that error. Nothing in
// MLX ends the process.
package mlxbind
