// Package nn holds what model families share: loading weights from a checkpoint, linear
// layers and embeddings (full precision or packed), norms, rotary positions, attention and
// KV caches. It knows no family.
//
// Everything here runs on the inference thread. On a processor activations are float32, on a
// GPU they have the checkpoint's own type.
package nn
