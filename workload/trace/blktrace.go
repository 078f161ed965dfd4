package trace

import (
	"encoding/binary"
	"fmt"
	"math"

	"farflash/block"
	"farflash/workload"
)

// blktraceDecoder reads blktrace's binary records as defined by Linux's blktrace_api.h, in either byte order: a header
// of 48 bytes (magic and version u32, sequence u32, time in ns u64, sector u64, bytes u32, action u32, pid u32, device
// u32, cpu u32, error u16, payload length u16), then the payload.
type blktraceDecoder struct {
	order  binary.ByteOrder
	action byte
}

const (
	blktraceHeader  = 48
	blktraceMagic   = 0x65617400 // the lowest byte is the version
	blktraceVersion = 7

	// The low half of an action is a stage of the request, the high half a set of categories.
	blktraceQueue    = 1
	blktraceIssue    = 7
	blktraceComplete = 8
	blktraceRead     = 1 << 16
	blktraceWrite    = 1 << 17
	blktraceFlush    = 1 << 18
	blktracePC       = 1 << 25
	blktraceNotify   = 1 << 26
	blktraceDiscard  = 1 << 29
)

// blktraceOrder returns the byte order of a file that starts with the magic number, or nil.
func blktraceOrder(head []byte) binary.ByteOrder {
	if len(head) < 4 {
		return nil
	}
	for _, order := range [...]binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(head)&^0xff == blktraceMagic {
			return order
		}
	}
	return nil
}

// payload validates a header and returns the length of the payload that follows it.
func (d *blktraceDecoder) payload(b []byte) (int, error) {
	magic := d.order.Uint32(b)
	if magic&^0xff != blktraceMagic {
		return 0, fmt.Errorf("magic number is %#08x; it must be %#08x", magic, blktraceMagic|blktraceVersion)
	}
	if version := magic & 0xff; version != blktraceVersion {
		return 0, fmt.Errorf("version is %d; it must be %d", version, blktraceVersion)
	}
	return int(d.order.Uint16(b[46:])), nil
}

// decode decodes a header that payload has validated.
func (d *blktraceDecoder) decode(b []byte, e *event) (bool, error) {
	action := d.order.Uint32(b[28:])
	if action&(blktraceNotify|blktracePC) != 0 {
		return false, nil
	}
	var stage byte
	switch action & 0xffff {
	case blktraceQueue:
		stage = actionQueued
	case blktraceIssue:
		stage = actionIssued
	case blktraceComplete:
		stage = actionCompleted
	}
	if stage == 0 || stage != d.action && stage != actionCompleted {
		return false, nil
	}
	e.completes = stage != d.action
	size := int64(d.order.Uint32(b[24:]))
	switch {
	case action&blktraceDiscard != 0:
		e.op = block.Trim
	case size == 0 && action&blktraceFlush != 0:
		e.op = block.Flush
	case action&blktraceWrite != 0:
		e.op = block.Write
	case action&blktraceRead != 0:
		e.op = block.Read
	default:
		return false, nil
	}
	first := d.order.Uint64(b[16:])
	if e.op == block.Flush {
		first = 0
	}
	if first > math.MaxInt64/uint64(sector) {
		return false, fmt.Errorf("sector %d exceeds any drive", first)
	}
	stamp := d.order.Uint64(b[8:])
	if stamp > math.MaxInt64 {
		return false, fmt.Errorf("time of %d ns is out of range", stamp)
	}
	e.at = ticks(stamp, 1e9)
	e.offset, e.size = int64(first)*sector, size
	e.volume = d.order.Uint32(b[36:])
	e.response = workload.NoResponse
	return true, nil
}

// choose selects the earliest stage of requests found at the start of the files, and notes it.
func (r *Reader) choose(heads []*headReader) byte {
	var queued, issued, completed int
	for _, h := range heads {
		head, order := h.head, blktraceOrder(h.head)
		for order != nil && len(head) >= blktraceHeader && order.Uint32(head)&^0xff == blktraceMagic {
			action := order.Uint32(head[28:])
			if action&(blktraceNotify|blktracePC) == 0 &&
				action&(blktraceRead|blktraceWrite|blktraceFlush|blktraceDiscard) != 0 {
				switch action & 0xffff {
				case blktraceQueue:
					queued++
				case blktraceIssue:
					issued++
				case blktraceComplete:
					completed++
				}
			}
			step := blktraceHeader + int(order.Uint16(head[46:]))
			if step > len(head) {
				break
			}
			head = head[step:]
		}
	}
	action, why := pickAction(queued, issued, completed)
	r.note("%s", why)
	return action
}
