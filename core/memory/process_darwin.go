package memory

import (
	"os"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// usageV4 is Darwin's struct rusage_info_v4 (sys/resource.h); the kernel fills exactly this much.
type usageV4 struct {
	uuid                 [16]byte
	before               [7]uint64 // times, wake-ups, page-ins, wired and resident size
	physFootprint        uint64
	between              [20]uint64 // start and exit, the children's, disk, times by urgency, logical writes
	lifetimeMaxFootprint uint64
	after                [6]uint64 // instructions, cycles, energy, interval maximum, runnable time
}

// The kernel writes 296 bytes: a shorter struct would be overrun.
var _ [296]byte = [unsafe.Sizeof(usageV4{})]byte{}

const usageFlavorV4 = 4 // RUSAGE_INFO_V4

// pidUsage is proc_pid_rusage of the system library, nil if it can't be found. It is called without
// cgo, so that this package stays pure Go.
var pidUsage = sync.OnceValue(func() func(pid, flavor int32, buffer unsafe.Pointer) int32 {
	library, err := purego.Dlopen("/usr/lib/libSystem.B.dylib", purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil
	}
	if _, err := purego.Dlsym(library, "proc_pid_rusage"); err != nil {
		return nil
	}
	var call func(pid, flavor int32, buffer unsafe.Pointer) int32
	purego.RegisterLibFunc(&call, library, "proc_pid_rusage")
	return call
})

// process returns the physical footprint and its highest value: what Activity Monitor shows as the
// process's memory. The resident size would miss what Metal's buffers take.
func process() (now, peak int64) {
	call := pidUsage()
	if call == nil {
		return 0, 0
	}
	var usage usageV4
	if call(int32(os.Getpid()), usageFlavorV4, unsafe.Pointer(&usage)) != 0 {
		return 0, 0
	}
	return int64(usage.physFootprint), int64(usage.lifetimeMaxFootprint)
}
