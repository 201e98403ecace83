package memory

import "github.com/shirou/gopsutil/v4/mem"

// Reading is what the system says now. A value is 0 where it does not tell.
type Reading struct {
	Process      int64 // this process: resident on Linux, physical footprint on macOS
	ProcessPeak  int64 // the highest Process has been
	MachineTotal int64
	Available    int64 // what programs can get without others being swapped out
}

// Read takes a reading. It costs microseconds, never waits and never fails: what can't be read is 0.
func Read() Reading {
	var r Reading
	r.Process, r.ProcessPeak = process()
	if v, err := mem.VirtualMemory(); err == nil {
		r.MachineTotal, r.Available = int64(v.Total), int64(v.Available)
	}
	return r
}
