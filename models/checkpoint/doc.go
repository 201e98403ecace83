// Package checkpoint reads model folders: config.json, the shard index, safetensors headers,
// tensor bytes, and how each module is quantized. It trusts nothing it reads: every header is
// checked against its file before any tensor of it is offered, and weights are read with
// ordinary reads rather than mapped, so that a drive that goes away is an error and not a
// signal that ends the process.
//
// It never writes. All failures are *Error values naming the file or the tensor.
package checkpoint
