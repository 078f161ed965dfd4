package fiojob

import (
	"fmt"
	"strings"

	"farflash/numeric/units"
	"farflash/workload/synth"
)

// blockSize is the request size of one direction: a single size, or a mixture whose smallest size is the alignment.
type blockSize struct {
	least int64
	mix   synth.Mix
}

// blockSizes reads bs, bsrange or bssplit: one value for both directions, or one for reads and one for writes. As in
// fio, bssplit takes precedence over bsrange, and bsrange over bs.
func (b *builder) blockSizes() (read, write blockSize) {
	both := []blockSize{{least: 4096}, {least: 4096}}
	of := func(s setting, what string, f func(text string) blockSize) {
		parts := strings.Split(s.value, ",")
		if len(parts) > 3 || len(parts) == 3 && parts[2] != parts[0] {
			b.fail(s, "%s=%s: give one %s, or one for reads and one for writes", s.name, s.value, what)
			return
		}
		for i := range both {
			if text := parts[min(i, len(parts)-1)]; text != "" {
				both[i] = f(text)
			}
		}
	}
	if s, ok := b.values["bs"]; ok {
		of(s, "size", func(text string) blockSize { return blockSize{least: b.block(s, text)} })
	}
	if s, ok := b.values["bsrange"]; ok {
		of(s, "range", func(text string) blockSize { return b.sizeRange(s, text) })
	}
	if s, ok := b.values["bssplit"]; ok {
		of(s, "split", func(text string) blockSize { return b.split(s, text) })
	}
	return both[0], both[1]
}

// block reads a request size.
func (b *builder) block(s setting, text string) int64 {
	v, err := size(text, b.kbBase)
	switch {
	case err != nil:
		b.fail(s, "%s: %v", s.name, err)
	case v <= 0 || v%512 != 0 || v > 1<<30:
		b.fail(s, "%s=%s is %d B; it must be a multiple of 512 up to 1 GiB", s.name, s.value, v)
	default:
		return v
	}
	return 4096
}

// sizeRange reads a range such as 4k-64k. As in fio, which rounds a draw down to a multiple of the smallest size, all
// multiples of it are equally likely.
func (b *builder) sizeRange(s setting, text string) blockSize {
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		b.fail(s, "%s=%s: %q is not a range; write 4k-64k", s.name, s.value, text)
		return blockSize{least: 4096}
	}
	x, most := b.block(s, low), b.block(s, high)
	switch {
	case x > most:
		b.fail(s, "%s=%s: %s is more than %s; write the smaller one first", s.name, s.value, low, high)
	case most/x > 1<<14:
		b.fail(s, "%s=%s has %d sizes; use at most %d", s.name, s.value, most/x, 1<<14)
	case x == most:
	default:
		return blockSize{x, synth.Mix(units.Bytes(x).String() + "-" + units.Bytes(most-most%x).String())}
	}
	return blockSize{least: x}
}

// split reads a split such as 4k/60:64k/40; sizes without a share divide the remainder.
func (b *builder) split(s setting, text string) blockSize {
	var parts []string
	least := int64(1) << 62
	for part := range strings.SplitSeq(text, ":") {
		bytes, share, given := strings.Cut(part, "/")
		v := b.block(s, strings.TrimSpace(bytes))
		least = min(least, v)
		text := units.Bytes(v).String()
		if given {
			text += "/" + strings.TrimSpace(share)
		}
		parts = append(parts, text)
	}
	mix := synth.Mix(strings.Join(parts, ":"))
	if _, _, err := mix.Parts(); err != nil {
		b.fail(s, "%s=%s: %v", s.name, s.value, err)
		return blockSize{least: 4096}
	}
	return blockSize{least, mix}
}

// order reads the options that make a job wait or flush.
func (b *builder) order(job *Job) {
	if s, ok := b.values["stonewall"]; ok && s.value != "0" {
		job.Wave = 1 // Parse numbers the waves
	}
	b.think(job)
	for _, name := range []string{"fsync", "fdatasync"} {
		if n := b.integer(name, 0, 0, 1<<62); n > 0 {
			if job.FlushEvery > 0 {
				b.fail(b.values[name], "fsync and fdatasync are the same here; leave out one of them")
			}
			job.FlushEvery = n
		}
	}
}

// think reads thinktime and thinktime_blocks. A time without a suffix is in microseconds.
func (b *builder) think(job *Job) {
	every := int(b.integer("thinktime_blocks", 1, 1, 1<<30))
	s, ok := b.values["thinktime"]
	if !ok {
		return
	}
	text := s.value
	if n := len(text); n > 0 && text[n-1] >= '0' && text[n-1] <= '9' {
		text += "us"
	}
	v, err := duration(text)
	if err != nil {
		b.fail(s, "thinktime: %v", err)
		return
	}
	if _, paced := b.values["rate_iops"]; v > 0 && paced {
		b.fail(s, "thinktime has no effect with rate_iops, which makes an open loop; leave out one of them")
		return
	}
	if _, paced := b.values["rate"]; v > 0 && paced {
		b.fail(s, "thinktime has no effect with rate, which makes an open loop; leave out one of them")
		return
	}
	if v > 0 {
		job.Think, job.ThinkEvery = v, every
	}
}

// files is the number of files of a job. As in fio, they have equal parts of its size, and requests go to them in turn.
func (b *builder) files(job *Job) int {
	s, ok := b.values["filename"]
	if !ok {
		return 1
	}
	n := 1
	for i := 1; i < len(s.value); i++ {
		if s.value[i] == ':' && s.value[i-1] != '\\' {
			n++
		}
	}
	switch {
	case n > 1024:
		b.fail(s, "filename has %d files; use at most 1024", n)
		return 1
	case n > 1 && b.random():
		job.Notes = append(job.Notes,
			fmt.Sprintf("its %d files are one range of the volume, over which addresses are drawn", n))
	case n > 1:
		job.Notes = append(job.Notes,
			fmt.Sprintf("its %d files lie one after the other, each with a part of the size; requests go to them in turn", n))
	}
	return n
}
