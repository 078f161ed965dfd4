package trace

import (
	"bytes"
	"fmt"

	"farflash/block"
	"farflash/workload"
)

// Stages of a request, as blkparse abbreviates them. One of them is chosen as the request's arrival.
const (
	actionQueued    = 'Q' // queued by the block layer, before merging
	actionIssued    = 'D' // issued to the driver, after merging
	actionCompleted = 'C' // completed
)

// blkparseDecoder reads blkparse's text. Lines of other actions than the chosen one yield no records; completions are
// passed on so that the reader can pair them. The summary at the end of blkparse's output is skipped.
type blkparseDecoder struct {
	action byte
	fields [10][]byte
}

func (d *blkparseDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	n := splitSpace(line, f[:])
	if n == 0 || blkparseSummary(line, f[0]) {
		return false, nil
	}
	if n < 7 {
		return false, columns(n, "at least 7")
	}
	major, minor, _ := bytes.Cut(f[0], []byte{','})
	var ok bool
	if e.volume, ok = parseDevice(major, minor); !ok {
		return false, fieldError("device", f[0], "major,minor")
	}
	if _, ok = parseUint(f[1]); !ok {
		return false, fieldError("cpu", f[1], "a whole number")
	}
	if _, ok = parseUint(f[2]); !ok {
		return false, fieldError("sequence", f[2], "a whole number")
	}
	if e.at, ok = parseDecimal(f[3], 0); !ok {
		return false, fieldError("time", f[3], "a decimal number of seconds")
	}
	if len(f[5]) != 1 && !isUpper(f[5]) {
		return false, fieldError("action", f[5], "an upper-case abbreviation such as Q, D or C")
	}
	if len(f[5]) != 1 || f[5][0] != d.action && f[5][0] != actionCompleted {
		return false, nil
	}
	e.completes = f[5][0] != d.action
	op, known := rwbs(f[6])
	if !known {
		return false, nil
	}
	e.op, e.response = op, workload.NoResponse
	plus := n >= 9 && string(f[8]) == "+"
	switch {
	case n < 10 && !plus && bytes.IndexByte(f[6], 'F') >= 0: // a flush has no address, and therefore no "+"
		e.op = block.Flush
		return true, nil
	case n < 10:
		return false, columns(n, "at least 10 (a sector, + and a number of sectors)")
	case !plus:
		return false, fieldError("the word after the sector", f[8], "+")
	}
	if e.offset, e.size, ok = sectorRange(f[7], f[9]); !ok {
		return false, sectorError("sector", f[7], "sectors", f[9])
	}
	if e.size == 0 && bytes.IndexByte(f[6], 'F') >= 0 {
		e.op, e.offset = block.Flush, 0
	}
	return true, nil
}

// blkparseSummary reports whether a line belongs to the summary that follows the events.
func blkparseSummary(line, first []byte) bool {
	if line[0] == ' ' && first[0] >= 'A' && first[0] <= 'Z' {
		return true
	}
	for _, word := range [...]string{"CPU", "Total", "Throughput", "Events", "Skips", "Input", "==="} {
		if bytes.HasPrefix(first, []byte(word)) {
			return true
		}
	}
	return false
}

func isUpper(s []byte) bool {
	for _, c := range s {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// rwbs decodes the kind of a request: D discards, R reads, W writes, F alone flushes; the rest (S sync, A ahead, M
// metadata, F after a W: force unit access) does not change the data transfer. N, a command that moves no data, is not
// a request.
func rwbs(s []byte) (block.Op, bool) {
	flush := false
	for _, c := range s {
		switch c {
		case 'D':
			return block.Trim, true
		case 'R':
			return block.Read, true
		case 'W':
			return block.Write, true
		case 'F':
			flush = true
		}
	}
	return block.Flush, flush
}

// chooseAction returns the earliest stage of requests found at the start of a blkparse file.
func chooseAction(lines [][]byte) (byte, string) {
	var queued, issued, completed int
	var f [7][]byte
	for _, line := range lines {
		if splitSpace(line, f[:]) < 7 || len(f[5]) != 1 {
			continue
		}
		if _, ok := rwbs(f[6]); !ok {
			continue
		}
		switch f[5][0] {
		case actionQueued:
			queued++
		case actionIssued:
			issued++
		case actionCompleted:
			completed++
		}
	}
	return pickAction(queued, issued, completed)
}

func pickAction(queued, issued, completed int) (byte, string) {
	action := byte(actionQueued)
	switch {
	case queued > 0:
	case issued > 0:
		action = actionIssued
	case completed > 0:
		action = actionCompleted
	}
	return action, fmt.Sprintf("a request arrives at its %c event (the file begins with %d Q, %d D and %d C events)",
		action, queued, issued, completed)
}
