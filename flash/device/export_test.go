package device

import "unsafe"

// AlignedTo reports whether b starts at a grain boundary, as direct I/O requires.
func AlignedTo(b []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%Grain == 0
}
