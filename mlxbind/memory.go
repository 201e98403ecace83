package mlxbind

/*
#include "bridge.h"
*/
import "C"

// Memory counters of MLX's allocator, in bytes. Safe from any thread.

// ActiveMemory is what arrays hold now.
func ActiveMemory() int64 { var n C.size_t; C.mlx_get_active_memory(&n); return int64(n) }

// CacheMemory is what the allocator keeps for reuse.
func CacheMemory() int64 { var n C.size_t; C.mlx_get_cache_memory(&n); return int64(n) }

// PeakMemory is the highest ActiveMemory since ResetPeakMemory.
func PeakMemory() int64 { var n C.size_t; C.mlx_get_peak_memory(&n); return int64(n) }

// ResetPeakMemory starts a new peak.
func ResetPeakMemory() { C.mlx_reset_peak_memory() }

// ClearCache gives the allocator's kept memory back to the system.
func ClearCache() { C.mlx_clear_cache() }

// SetCacheLimit bounds what the allocator keeps for reuse.
func SetCacheLimit(bytes int64) { var old C.size_t; C.mlx_set_cache_limit(&old, C.size_t(bytes)) }

// SetWiredLimit bounds what Metal keeps resident; without effect elsewhere.
func SetWiredLimit(bytes int64) {
	var old C.size_t
	if C.mlx_set_wired_limit(&old, C.size_t(bytes)) != 0 {
		discardError()
	}
}
