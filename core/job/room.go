package job

import (
	"fmt"

	"github.com/shirou/gopsutil/v4/disk"
)

// RoomError is returned when a disk has too little room for a result.
type RoomError struct {
	Folder     string
	Need, Free int64 // bytes
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("%s: %d bytes are needed, %d are free", e.Folder, e.Need, e.Free)
}

// spare is left on every disk.
const spare = 4 << 20

// CheckRoom refuses when the disk that folder is on has no room for need bytes. A disk that does
// not say how much it has is tried.
func CheckRoom(folder string, need int64) error {
	usage, err := disk.Usage(folder)
	if err != nil || usage.Total == 0 {
		return nil
	}
	if free := int64(usage.Free); free < need+spare {
		return &RoomError{folder, need, free}
	}
	return nil
}
