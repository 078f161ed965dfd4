package ctl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// Damage is what Examine found wrong with a pool.
type Damage struct {
	// Refused is why Open refuses the pool, or nil. The other fields but Copies say what follows from it.
	Refused error
	// Copies are damaged pages of the pool's own records of which another copy is intact. Repair writes them again.
	Copies []Lost
	// Guessed is set if both superblocks are lost and the layout was found by the positions of other records. The
	// capacity is then the default, because nothing else records it.
	Guessed bool
	// Gaps are the missing records of the log after the state that they would be applied to.
	Gaps []Gap
	// Entries is the number of places whose entries are missing from the checkpoint that the state was read from.
	Entries int64
	// Doubtful is the number of pages whose place is known, but not whether it is their newest. See Certain.
	Doubtful int64
	// Unowned is the number of pages that were written to segments which were still open when the pool stopped, so that
	// they have no summary, and of which no record is left that says whose they were.
	Unowned int64
	// Dropped is the number of pages whose last write is in the log, but not on the medium, and nothing says that it
	// was durable. It was lost when the pool stopped, or damaged later: then they are out of date.
	Dropped int64
	// Missing is set if a page that reads as zeros may have had content.
	Missing bool
	// Tail has the pages after the end of the log that are not valid. They were being written when the pool
	// stopped, or they were damaged later: then the last changes are missing, and no other record shows it.
	Tail []Lost
}

// Any reports whether there is something to repair.
func (d *Damage) Any() bool { return d.Refused != nil || len(d.Copies) > 0 }

// Bad is a page of the pool whose content is lost.
type Bad struct {
	Page   uint64
	Offset int64 // of its place, in bytes
	Device int
	Err    error
}

// Examined is a pool that was opened for reading only, whatever its state. Its pages do not change, and nothing is
// written to its devices before Repair.
type Examined struct {
	*Pool
	Damage
	doubt []uint64 // by place
	// pages whose last write was dropped
	dropped map[uint64]bool
}

// errExamined is why an examined pool refuses writes.
var errExamined = fmt.Errorf("%w: it was opened for examination", ErrReadOnly)

// Examine opens a pool for reading only, and does not write to its devices. If Open refuses the pool, the state is
// rebuilt from the checkpoints, log pages and summaries that are left; see Damage for what that leaves uncertain. As
// with Open, the pool owns the devices if there is no error. progress is called from time to time with the pages read
// and their number; an error that it returns ends the examination.
func Examine(cfg Config, progress func(done, all int64) error, devices ...device.Device) (*Examined, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Map = 0 // rebuilding and repairing need all of the map, and examining writes no checkpoint to read it from
	shape, sorted, err := remains.Rearrange(devices, DefaultLayout().OverProvision, defaultLog)
	if err != nil {
		return nil, err
	}
	x := &Examined{}
	_, _, lost := remains.Arrange(devices)
	cfg.Trouble = named(cfg.Trouble, sorted)
	x.Pool, err = begin(cfg, sorted, func(p *Pool) error {
		f, err := findState(cfg, shape, sorted, progress, p)
		if err != nil {
			return err
		}
		f.readOnly = errExamined
		f.stopped.Store(true)
		if err := f.settleState(f.end, true); err != nil {
			return err
		}
		p.core, p.found, x.Damage, x.doubt = f.core, f.report, f.damage, f.doubt
		x.dropped, x.Guessed = f.dropped, lost != nil && len(devices) == 1
		return nil
	})
	return x, err
}

// state is the newest state of a pool that its records lead to, before anything is written.
type state struct {
	*recovery
	end    ending
	damage Damage
	doubt  []uint64
	holes  *remains.Snapshot // has grains that are lost, and their content
}

// findState reads the state of a pool as Open does, or rebuilds it.
func findState(cfg Config, shape media.Shape, devices []device.Device, progress func(done, all int64) error,
	p *Pool) (*state, error) {
	c, err := newCore(cfg, shape, p.completed, p.arrived)
	if err != nil {
		return nil, err
	}
	f := &state{recovery: newRecovery(c, devices)}
	if f.end, f.damage.Refused = f.readState(); f.damage.Refused == nil {
		h, err := f.headers()
		if i := slices.IndexFunc(h, func(h media.Header) bool { return h.Generation == f.end.generation }); i >= 0 {
			f.audit(h[i].Generation, f.left().Stream(h[i], true,
				func(int64, media.Segment, media.Entries) error { return nil }))
		}
		if newest := f.end.newest; newest != f.end.generation {
			f.lost(0, f.shape.CheckpointStart(int(newest&1))*Page,
				fmt.Sprintf("checkpoint %d, of which the log has all that the one before it lacks", newest))
		}
		f.damage.Copies, f.damage.Tail = f.report.Lost, f.tail()
		f.damage.Dropped = int64(len(f.dropped))
		return f, err
	}
	if c, err = newCore(cfg, shape, p.completed, p.arrived); err != nil {
		return nil, err
	}
	b := &rebuild{recovery: newRecovery(c, devices), progress: progress}
	b.superblocks()
	if f.end, err = b.run(); err != nil {
		return nil, errors.Join(f.damage.Refused, err)
	}
	f.recovery, f.doubt = b.recovery, b.doubt
	if b.base != nil && len(b.base.Lost) > 0 {
		f.holes = b.base
		f.holes.Each(true, func(int64, *media.Entry) { f.damage.Entries++ })
	}
	f.damage.Copies, f.damage.Gaps = f.report.Lost, b.gaps
	f.damage.Doubtful, f.damage.Missing, f.damage.Tail = b.doubtful(), b.missing, f.tail()
	f.damage.Dropped = int64(len(b.dropped))
	if b.missing && b.summaries != nil {
		f.damage.Unowned = b.unowned()
	}
	return f, b.ended
}

// tail returns the pages where the log would go on that hold neither an older page nor zeros.
func (f *state) tail() []Lost {
	var out []Lost
	zeros := make([]byte, Page)
	for n := f.end.number; n < f.end.number+uint64(f.shape.LogPages); n++ {
		at := f.logOffset(n)
		if device.Do(f.devices[0], device.Read, at, f.content) == nil {
			if _, _, err := media.DecodeLogPage(f.content, f.shape.UUID); err == nil || bytes.Equal(f.content, zeros) {
				break
			}
		}
		out = append(out, Lost{What: fmt.Sprintf("page %d of the log", n), Offset: at, Name: nameOf(f.devices, 0)})
	}
	return out
}

// audit reports the pages of the checkpoint in force that are damaged, but were not needed.
func (f *state) audit(generation uint64, s *remains.Streamed) {
	start := f.shape.CheckpointStart(int(generation & 1))
	for at := range int64(media.Headers) {
		err := device.Do(f.devices[0], device.Read, (start+at)*Page, f.content)
		if err == nil {
			_, err = media.DecodeHeader(f.content, f.shape.UUID)
		}
		if err != nil {
			f.lost(0, (start+at)*Page, fmt.Sprintf("a header of checkpoint %d", generation))
		}
	}
	all := media.BodyPages(int64(len(f.segments)), f.shape.Pages)
	for _, i := range s.Parity {
		at := start + media.BodyGrain(i) + min(media.Group, all-i)
		f.lost(0, at*Page, fmt.Sprintf("a parity page of checkpoint %d", generation))
	}
}

// Certain reports whether a page is known to have its newest content, or to have none.
func (x *Examined) Certain(page uint64) bool {
	if x.dropped[page] {
		return false
	}
	at := x.core.Lookup(ftl.LPA(page))
	if at == ftl.NoPPA {
		return !x.Missing
	}
	return x.doubt == nil || x.doubt[at>>6]>>(at&63)&1 == 0
}

// Close closes the devices. It writes nothing.
func (x *Examined) Close() error {
	x.lock()
	if x.closed {
		x.leave()
		return x.err
	}
	x.closed = true
	x.shut.Store(true)
	x.leave()
	return x.release(nil)
}

// Pages calls fn for each page that has content, in order, until it returns false.
func (x *Examined) Pages(first, last uint64, fn func(page uint64) bool) {
	for page := range x.table.Words(first, last) {
		if x.core.Lookup(ftl.LPA(page)) != ftl.NoPPA && !fn(page) {
			return
		}
	}
}

// Read reads all pages and returns those whose content is lost, in order. progress is called from time to time with the
// pages read and their number; an error that it returns ends the reading.
func (x *Examined) Read(progress func(done, all int64) error) ([]Bad, error) {
	c := x.core
	var out []Bad
	done := int64(0)
	var places, alone []ftl.PPA
	sums := map[int64][]media.Entry{} // of the segments that are being read; those that are lost are wrong
	sum := func(p ftl.PPA) uint32 {
		s := c.segmentOf(p)
		if sums[s] == nil {
			sums[s], _ = x.entriesOf(s)
		}
		return sums[s][int64(p)-s*int64(c.shape.Pages)].Sum
	}
	for i := range c.segments {
		for k := range c.shape.Pages {
			if p := ftl.PPA(i*c.shape.Pages + k); c.ledger.IsLive(p) {
				places = append(places, p)
			}
		}
		if len(places) < readAtOnce && i < len(c.segments)-1 {
			continue
		}
		if err := progress(done, c.ledger.Lives()); err != nil {
			return nil, err
		}
		c.sumPlaces(x.devices, places, func(p ftl.PPA, is uint32, err error) {
			if err != nil || is != sum(p) {
				alone = append(alone, p)
			}
		})
		done += int64(len(places))
		places = places[:0]
		clear(sums)
	}
	buf := device.Aligned(Page)
	for _, p := range alone { // one bad page fails the read of its neighbours
		dev, offset := c.at(p)
		err := device.Do(x.devices[dev], device.Read, offset, buf)
		if err == nil && media.Sum(c.seed, buf) != sum(p) {
			err = ErrDamaged
		}
		if err != nil {
			out = append(out, Bad{Page: c.owner(p), Device: int(dev), Offset: offset, Err: err})
		}
	}
	slices.SortFunc(out, func(a, b Bad) int { return cmp.Compare(a.Page, b.Page) })
	return out, progress(done, c.ledger.Lives())
}

// Repair makes the state as examined, without the given pages, the pool's state: Open then finds nothing damaged but
// pages that were left out. It returns when that is durable; after an interruption the pool is as it was or as it is to
// be, and Repair can be repeated. The pool can only be closed afterwards.
//
// It first rewrites damaged pages in place, and no others. Then the checkpoint that the state was read
// from is complete, so that the other one can be replaced.
func (x *Examined) Repair(drop []uint64, progress func(done, all int64) error) error {
	f, err := findState(x.core.cfg, x.core.shape, x.devices, progress, x.Pool)
	if err != nil {
		return err
	}
	if err := f.restoreCopies(); err != nil {
		return fmt.Errorf("ctl: repairing: %w", err)
	}
	for _, page := range drop {
		if w, _ := f.table.Peek(page); w.State() == table.OnMedium {
			f.empty(page, 1)
		}
	}
	if err := f.settleState(f.end, true); err != nil {
		return err
	}
	return f.readOnly
}

// restoreCopies writes the superblocks and the grains of the checkpoint that are lost. It overwrites nothing that can
// be read.
func (f *state) restoreCopies() error {
	page := device.Aligned(Page)
	for d, dev := range f.devices {
		f.shape.EncodeSuperblock(page, d)
		for at := range int64(2) {
			if device.Do(dev, device.Read, at*Page, f.content) == nil && bytes.Equal(f.content, page) {
				continue
			}
			if err := device.Do(dev, device.Write, at*Page, page); err != nil {
				return err
			}
			if err := device.Do(dev, device.Flush, 0, nil); err != nil {
				return err
			}
		}
	}
	if f.holes == nil {
		return nil
	}
	// A parity that is not that of the grains could make a grain from them that passes for one, since the checksum is
	// linear too. So it is wiped, with what no grain begins with, before any of its group is written.
	if err := f.restoreGrains(func(at int64, _ []byte) error {
		for i := range page {
			page[i] = 0xff
		}
		return device.Do(f.devices[0], device.Write, at*Page, page)
	}, nil); err != nil {
		return err
	}
	write := func(at int64, grain []byte) error { return device.Do(f.devices[0], device.Write, at*Page, grain) }
	if err := f.restoreGrains(nil, write); err != nil {
		return err
	}
	return f.restoreGrains(write, nil)
}

// restoreGrains calls parity with the parity, and grain with each grain that is lost, of each group that has one, and
// flushes.
func (f *state) restoreGrains(parity, grain func(at int64, content []byte) error) error {
	s, buf := f.holes, device.Aligned(bodyChunk*Page)
	all := media.BodyPages(int64(len(f.segments)), f.shape.Pages)
	start := f.shape.CheckpointStart(s.Slot)
	for i := int64(0); i < all; i += media.Group {
		n := min(media.Group, all-i)
		var lost []int64
		for k := range n {
			if s.Lost[i+k] {
				lost = append(lost, k)
			}
		}
		if len(lost) == 0 {
			continue
		}
		group := encodeGroup(buf, &s.Body, i, all, f.shape.UUID, s.Header.Generation)
		if parity != nil {
			if err := parity(start+media.BodyGrain(i)+n, group[n*Page:]); err != nil {
				return err
			}
			continue
		}
		for _, k := range lost {
			if err := grain(start+media.BodyGrain(i+k), group[k*Page:][:Page]); err != nil {
				return err
			}
		}
	}
	return device.Do(f.devices[0], device.Flush, 0, nil)
}
