package memory

import "testing"

func TestStatusField(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t  1024 kB\nVmOdd:\t5 MB\nVmBad:\tx kB\nVmEnd:\t1 kB")
	for name, want := range map[string]int64{"VmHWM:": 2048 << 10, "VmRSS:": 1024 << 10, "VmOdd:": 0, "VmBad:": 0, "VmEnd:": 1024, "VmNone:": 0} {
		if got := statusField(status, name); got != want {
			t.Errorf("%s %d, want %d", name, got, want)
		}
	}
}
