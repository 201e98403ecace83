package memory

import (
	"bytes"
	"os"
	"strconv"
)

// process returns the resident size and its high-water mark.
func process() (now, peak int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	return statusField(status, "VmRSS:"), statusField(status, "VmHWM:")
}

// statusField returns the bytes that a line such as "VmRSS:	  1234 kB" states, 0 without one.
func statusField(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			return 0
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}
