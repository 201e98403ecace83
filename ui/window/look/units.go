package look

import (
	"fmt"
	"runtime"
)

// Memory writes bytes of memory the way macOS does: in 2²⁰ as MB, from 2³⁰ on as GB.
func Memory(bytes int64) string {
	if bytes >= 1<<30 {
		return MemoryGB(bytes)
	}
	return fmt.Sprintf("%d MB", (bytes+1<<19)>>20)
}

// MemoryGB writes bytes of memory in 2³⁰, always as GB.
func MemoryGB(bytes int64) string { return Gigabytes(bytes) + " GB" }

// Gigabytes writes bytes of memory as a bare number of 2³⁰.
func Gigabytes(bytes int64) string {
	g := float64(bytes) / (1 << 30)
	if g >= 100 {
		return fmt.Sprintf("%.0f", g)
	}
	return fmt.Sprintf("%.1f", g)
}

// Machine is what people call what this runs on.
func Machine() string {
	if runtime.GOOS == "darwin" {
		return "this Mac"
	}
	return "this computer"
}
