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

// Files writes bytes of files in decimal units, as file managers do.
func Files(bytes int64) string {
	number, unit := decimal(bytes, bytes)
	return number + " " + unit
}

// FilesFinely is Files with a decimal also for small sizes, where two are compared.
func FilesFinely(bytes int64) string {
	if bytes >= 1e6 && bytes < 1e8 {
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return Files(bytes)
}

// FilesOf writes how much of a size is done: "12 of 39 MB".
func FilesOf(done, total int64) string {
	whole, unit := decimal(total, total)
	part, _ := decimal(done, total)
	return part + " of " + whole + " " + unit
}

// decimal writes bytes in the unit that suits scale.
func decimal(bytes, scale int64) (number, unit string) {
	switch {
	case scale >= 1e9:
		return fmt.Sprintf("%.1f", float64(bytes)/1e9), "GB"
	case scale >= 1e6:
		return fmt.Sprintf("%.0f", float64(bytes)/1e6), "MB"
	}
	return fmt.Sprintf("%.0f", float64(bytes)/1e3), "kB"
}
