package mlxbind

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// The inference thread and its stream. Written once by Init.
var (
	owner  atomic.Uintptr
	stream C.mlx_stream
	onGPU  bool
)

// Init locks the calling goroutine to its OS thread, makes that thread the one that MLX work
// happens on, catches MLX's errors and picks the default device. It may be called again
// from another goroutine once the first has done all its work.
func Init() error {
	runtime.LockOSThread()
	C.firesteel_catch_errors()
	owner.Store(uintptr(C.firesteel_thread()))
	device := C.mlx_device_new()
	defer C.mlx_device_free(device)
	if C.mlx_get_default_device(&device) != 0 {
		return takeError("find the default device")
	}
	var kind C.mlx_device_type
	C.mlx_device_get_type(&kind, device)
	onGPU = kind == C.MLX_GPU
	stream = C.mlx_stream_new()
	if C.mlx_get_default_stream(&stream, device) != 0 {
		return takeError("open the default stream")
	}
	if onGPU {
		return nil
	}
	return firstProduct()
}

// firstProduct multiplies two matrices for nothing. OpenBLAS starts its threads with the first
// product that is large enough for them, and rounds that one product unlike all later ones: a
// program that goes on with another's work would come to other numbers.
func firstProduct() error {
	s := NewScope()
	defer s.Close()
	a := s.Zeros(Float32, 256, 256)
	return s.Eval(s.Matmul(a, a))
}

// OnGPU tells whether work runs on a GPU (Metal or CUDA) rather than the processor.
func OnGPU() bool { return onGPU }

// DeviceName is the chip's own name, such as "Apple M4 Pro", or "CPU".
func DeviceName() string {
	if name, ok := deviceString("device_name"); ok {
		return name
	}
	if onGPU {
		return "GPU"
	}
	return "CPU"
}

// RecommendedWorkingSet is how many bytes the device's maker advises to keep on it; zero
// where the device does not say.
func RecommendedWorkingSet() int64 {
	info, free := deviceInfo()
	defer free()
	key := C.CString("max_recommended_working_set_size")
	defer C.free(unsafe.Pointer(key))
	var n C.size_t
	if C.mlx_device_info_get_size(&n, info, key) != 0 {
		discardError()
	}
	return int64(n)
}

func deviceString(name string) (string, bool) {
	info, free := deviceInfo()
	defer free()
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	var text *C.char
	if C.mlx_device_info_get_string(&text, info, key) != 0 || text == nil {
		discardError()
		return "", false
	}
	return C.GoString(text), true
}

func deviceInfo() (C.mlx_device_info, func()) {
	device := C.mlx_device_new()
	C.mlx_get_default_device(&device)
	info := C.mlx_device_info_new()
	if C.mlx_device_info_get(&info, device) != 0 {
		discardError()
	}
	return info, func() {
		C.mlx_device_info_free(info)
		C.mlx_device_free(device)
	}
}

// DisableFusion keeps Compile from generating kernels, for machines without a C++ compiler:
// graphs are still simplified.
func DisableFusion() { C.mlx_set_compile_mode(C.MLX_COMPILE_MODE_NO_FUSE) }

// Version is MLX's own version, such as "0.32.2".
func Version() string {
	text := C.mlx_string_new()
	defer C.mlx_string_free(text)
	if C.mlx_version(&text) != 0 {
		discardError()
		return "unknown"
	}
	return C.GoString(C.mlx_string_data(text))
}

func assertThread() {
	if uintptr(C.firesteel_thread()) != owner.Load() {
		panic("mlxbind: called outside the inference thread")
	}
}

// Error is what MLX said went wrong, and in which operation.
type Error struct{ Operation, Message string }

func (e *Error) Error() string { return fmt.Sprintf("mlx: %s: %s", e.Operation, e.Message) }

func takeError(operation string) error {
	text := C.firesteel_take_error()
	if text == nil {
		return &Error{operation, "failed without a message"}
	}
	defer C.free(unsafe.Pointer(text))
	return &Error{operation, C.GoString(text)}
}

func discardError() {
	if text := C.firesteel_take_error(); text != nil {
		C.free(unsafe.Pointer(text))
	}
}
