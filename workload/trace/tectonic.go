package trace

import (
	"fmt"
	"math"

	"farflash/block"
	"farflash/workload"
)

// tectonicBlock is the size in bytes of the largest Tectonic block; block b is placed at b times this address.
const tectonicBlock = 8 << 20

// tectonicDecoder reads the Tectonic traces published with Baleen. Three layouts share their first five columns,
// block_id io_offset io_size op_time op_name: that of 2019 continues with pipeline user_namespace user_name, that of
// 2021 with user_namespace user_name host_name op_count, and that of 2023 with user_namespace user_name rs_shard_id
// op_count host_name. Operations 1, 2 and 5 get data; 3, 4 and 6 put it. Lines that start with # are comments. A volume
// is a host, if the layout names it.
type tectonicDecoder struct {
	volumes *volumes
	fields  [10][]byte
	columns int   // in the file's first record
	several int64 // records that stand for more than one operation
}

func (d *tectonicDecoder) decode(line []byte, e *event) (bool, error) {
	if len(line) > 0 && line[0] == '#' {
		return false, nil
	}
	f := &d.fields
	n := splitSpace(line, f[:])
	if n == 0 {
		return false, nil
	}
	if n < 8 || n > 10 || d.columns != 0 && n != d.columns {
		want := "8, 9 or 10"
		if d.columns != 0 {
			want = fmt.Sprintf("%d as in the lines above", d.columns)
		}
		return false, columns(n, want)
	}
	blockID, ok := parseUint(f[0])
	if !ok {
		if string(f[0]) == "block_id" {
			return false, nil
		}
		return false, fieldError("block_id", f[0], "a whole number")
	}
	if blockID > math.MaxInt64/tectonicBlock-1 {
		return false, fmt.Errorf("block_id %d is outside the address space: with blocks of 8 MiB the maximum is %d",
			blockID, int64(math.MaxInt64/tectonicBlock-1))
	}
	offset, ok := parseInt63(f[1])
	if !ok || offset > tectonicBlock {
		return false, fieldError("io_offset", f[1], "a number of bytes within a block of 8 MiB")
	}
	e.offset = int64(blockID)*tectonicBlock + offset
	if e.size, ok = parseInt63(f[2]); !ok {
		return false, fieldError("io_size", f[2], "a whole number of bytes")
	}
	if e.at, ok = parseDecimal(f[3], 0); !ok {
		return false, fieldError("op_time", f[3], "a decimal number of seconds")
	}
	op, ok := parseUint(f[4])
	switch {
	case ok && (op == 1 || op == 2 || op == 5):
		e.op = block.Read
	case ok && (op == 3 || op == 4 || op == 6):
		e.op = block.Write
	default:
		return false, fieldError("op_name", f[4], "1, 2 or 5 (get) or 3, 4 or 6 (put)")
	}
	host, count := []byte(nil), []byte(nil)
	switch n {
	case 9:
		host, count = f[7], f[8]
	case 10:
		host, count = f[9], f[8]
	}
	if host != nil {
		times, ok := parseUint(count)
		if !ok {
			return false, fieldError("op_count", count, "a whole number")
		}
		if times > 1 {
			d.several++
		}
		var err error
		if e.volume, err = d.volumes.intern(host); err != nil {
			return false, err
		}
	}
	d.columns = n
	e.response = workload.NoResponse
	return true, nil
}
