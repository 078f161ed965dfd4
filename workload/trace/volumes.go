package trace

import (
	"fmt"
	"strconv"
)

// volumes numbers the volumes of a trace. Formats that number their volumes keep these numbers; names and long numbers
// are numbered 0, 1, 2... in order of first appearance.
type volumes struct {
	names  []string          // of volumes numbered here
	number map[string]uint32 // the inverse
	last   string            // last name looked up: most records name the same volume as the previous one
	lastID uint32
	format func(uint32) string // for volumes numbered by the format; nil if names are used
}

// intern returns the number of a named volume.
func (v *volumes) intern(name []byte) (uint32, error) {
	if string(name) == v.last && len(v.names) > 0 {
		return v.lastID, nil
	}
	id, ok := v.number[string(name)]
	if !ok {
		if uint64(len(v.names)) > 1<<32-1 {
			return 0, fmt.Errorf("more than 2^32 volumes")
		}
		if v.number == nil {
			v.number = make(map[string]uint32)
		}
		id = uint32(len(v.names))
		text := string(name)
		v.names = append(v.names, text)
		v.number[text] = id
	}
	v.last, v.lastID = v.names[id], id
	return id, nil
}

// name returns the trace's name for volume id.
func (v *volumes) name(id uint32) string {
	switch {
	case v.format != nil:
		return v.format(id)
	case int64(id) < int64(len(v.names)):
		return v.names[id]
	}
	return strconv.FormatUint(uint64(id), 10)
}

// parseVolume parses a volume number of a format that numbers its volumes.
func parseVolume(s []byte) (uint32, bool) {
	v, ok := parseUint(s)
	return uint32(v), ok && v <= 1<<32-1
}

// deviceName formats a Linux device number, major<<20 | minor.
func deviceName(id uint32) string {
	return strconv.Itoa(int(id>>20)) + "," + strconv.Itoa(int(id&(1<<20-1)))
}

// deviceNumber packs a Linux device number as the kernel does.
func deviceNumber(major, minor uint64) (uint32, bool) {
	return uint32(major<<20 | minor), major < 1<<12 && minor < 1<<20
}
