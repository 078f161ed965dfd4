package flashcli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
)

// stretch is a run of bytes of a file.
type stretch struct{ from, to int64 }

func (s stretch) String() string { return fmt.Sprintf("bytes %d to %d", s.from, s.to-1) }

// stretches is a list of stretches in order.
type stretches []stretch

// add appends a run, which continues the last one if it is adjacent.
func (all *stretches) add(from, to int64) {
	if n := len(*all); n > 0 && (*all)[n-1].to == from {
		(*all)[n-1].to = to
		return
	}
	*all = append(*all, stretch{from, to})
}

func (all stretches) bytes() (n int64) {
	for _, s := range all {
		n += s.to - s.from
	}
	return n
}

// runs calls fn for the runs of pages of a file that have content, or have none, as ranges of its bytes.
func runs(x *ctl.Examined, e cfs.Status, fn func(from, to int64, held bool) error) error {
	for at := int64(0); at < e.Size; {
		n, held := x.Run((e.Base+uint64(at))/ctl.Page, uint64((e.Size-at+ctl.Page-1)/ctl.Page))
		to := min(at+int64(n)*ctl.Page, e.Size)
		if err := fn(at, to, held); err != nil {
			return err
		}
		at = to
	}
	return nil
}

// outdated returns the parts of a file that may be out of date.
func outdated(x *ctl.Examined, e cfs.Status) (all stretches) {
	if !x.Missing && x.Doubtful == 0 && x.Dropped == 0 || e.Kind != cfs.Regular {
		return nil
	}
	_ = runs(x, e, func(from, to int64, held bool) error {
		if !held && x.Dropped == 0 {
			if x.Missing {
				all.add(from, to)
			}
			return nil
		}
		for at := from; at < to; at += ctl.Page {
			if !x.Certain((e.Base + uint64(at)) / ctl.Page) {
				all.add(at, min(at+ctl.Page, to))
			}
		}
		return nil
	})
	return all
}

// findings are the faults of a pool, as lines of text.
type findings struct {
	pool   *ctl.Examined
	survey *cfs.Survey // nil without a file system
	drop   []uint64
	lines  []string
	files  int // that lose something
}

func (f *findings) sayf(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// records describes the damage of the pool's own records.
func (f *findings) records() {
	d := &f.pool.Damage
	if d.Refused != nil {
		f.sayf("the pool cannot be opened: %s", strings.ReplaceAll(d.Refused.Error(), "\n", "; "))
	}
	if d.Guessed {
		f.sayf("both superblocks are lost: the layout is that of the other records, and the capacity the default, %s",
			term.Size(float64(f.pool.Shape().Capacity*ctl.Page)))
	}
	for _, x := range d.Copies {
		f.sayf("damaged, and will be written again without loss: %v", x)
	}
	for _, g := range d.Gaps {
		f.sayf("missing: records %d to %d of the log, each of which wrote, moved or discarded pages", g.From, g.To-1)
	}
	if d.Entries > 0 {
		f.sayf("missing: %d entries of the checkpoint", d.Entries)
	}
	switch {
	case d.Doubtful > 0 || d.Missing:
		f.sayf("where records are missing, a page has its newest content that is known; all that the missing records " +
			"may have changed is listed as possibly out of date")
	case d.Refused != nil:
		f.sayf("nothing is lost by that: the records that are left have all of it")
	}
	if d.Unowned > 0 {
		f.sayf("pages in segments that were still open, of which no record says whose they were: %d; among them may be "+
			"newer content, or content that was replaced", d.Unowned)
	}
	if n := len(d.Tail); n > 0 {
		f.sayf("the log ends before damaged pages: %d, the first of them %v; unless they were being written when the "+
			"pool stopped, the last changes are missing", n, d.Tail[0])
	}
	if d.Dropped > 0 {
		f.sayf("%d pages at the log's end are not on the medium: they were never durable, or are damaged", d.Dropped)
	}
}

// contents describes the pages that are damaged, by file.
func (f *findings) contents(bad []ctl.Bad) {
	var entries []cfs.Status
	if f.survey != nil {
		entries = append(entries, f.survey.Entries...)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Base < entries[j].Base })
	lost := make([]stretches, len(entries))
	for _, b := range bad {
		f.drop = append(f.drop, b.Page)
		i := sort.Search(len(entries), func(i int) bool { return entries[i].Base > b.Page*ctl.Page }) - 1
		if i >= 0 && entries[i].Kind == cfs.Regular && b.Page*ctl.Page < entries[i].Base+uint64(entries[i].Size) {
			at := int64(b.Page*ctl.Page - entries[i].Base)
			lost[i].add(at, min(at+ctl.Page, entries[i].Size))
			continue
		}
		what := "outside of all files"
		if f.survey != nil {
			what = f.survey.What(b.Page)
		}
		f.sayf("page %d of the pool, %s: %v; will be dropped", b.Page, what, b.Err)
	}
	for i, e := range entries {
		for _, s := range lost[i] {
			f.sayf("%s: %v: damaged; will be dropped and read as zeros", e.Path, s)
		}
		if len(lost[i]) > 0 {
			f.files++
		}
	}
	for _, e := range entries {
		for _, s := range outdated(f.pool, e) {
			f.sayf("%s: %v: may be out of date", e.Path, s)
		}
	}
}

// tree describes the damage of the file system.
func (f *findings) tree() {
	if f.survey == nil {
		return
	}
	for _, v := range f.survey.Violations {
		f.sayf("file system: %v", v)
	}
	for _, m := range f.survey.Mends {
		f.sayf("to do: %s", m)
	}
	if f.survey.Hopeless {
		f.sayf("the file system cannot be mended, because there are several ways: copy its files out with farflash " +
			"flash " +
			"salvage, and format the pool")
	}
}

// any reports whether there is something to repair.
func (f *findings) any() bool {
	return f.pool.Any() || len(f.drop) > 0 || f.survey != nil && len(f.survey.Violations) > 0
}

// survey reads the remains of the file system of an examined pool; nil if there is none.
func survey(x *ctl.Examined) (*cfs.Survey, error) {
	s, err := cfs.NewSurvey(x.Pool, cfs.Config{Now: time.Now})
	if errors.Is(err, cfs.ErrNoFS) {
		return nil, nil
	}
	return s, err
}

// open opens a pool for examination, with a progress line.
func (p *program) open(ctx context.Context, o pool.Options, readOnly bool, devices ...string) (*ctl.Examined, error) {
	x, err := watched(ctx, p, "examining", func(step func(done, all int64) error) (*ctl.Examined, error) {
		return pool.Examine(o, readOnly, step, devices...)
	})
	if errors.Is(err, context.Canceled) {
		return nil, verb.Failed(fmt.Errorf("%s: interrupted; nothing was written", strings.Join(devices, ", ")))
	}
	return x, verb.BadInput(err)
}

// watched runs work that reads pages under a progress line. Its step ends it when the context is cancelled.
func watched[T any](ctx context.Context, p *program, label string, work func(step func(done, all int64) error) (T,
	error)) (T, error) {
	bar := p.Progress(label, "pages", false, "Ctrl-C stops; nothing was written")
	defer bar.Stop()
	return work(func(done, all int64) error {
		bar.Update(done, all, "")
		return ctx.Err()
	})
}

// examine reads all of a pool and prints its faults.
func (p *program) examine(ctx context.Context, x *ctl.Examined, name string) (*findings, error) {
	f := &findings{pool: x}
	bad, err := watched(ctx, p, "reading", x.Read)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; nothing was written")
	}
	if err == nil {
		f.survey, err = survey(x)
	}
	if err != nil {
		return nil, verb.Failed(fmt.Errorf("%s: %w", name, err))
	}
	f.records()
	f.contents(bad)
	f.tree()
	for _, line := range f.lines {
		fmt.Fprintf(p.Out, "%s: %s\n", name, line)
	}
	return f, nil
}

// agreed asks whether to repair. It reads a line from a terminal, and reports false for anything but yes.
func (p *program) agreed(ctx context.Context, question string) (bool, error) {
	in, ok := p.In.(*os.File)
	if !ok || !term.IsTerminal(in) {
		return false, errors.New(
			"not repaired, and nothing was written: standard input is not a terminal, so nobody can " +
				"agree; --yes does")
	}
	fmt.Fprintf(p.Out, "%s [yes/no] ", question)
	line := make(chan string, 1)
	go func() { // a read from a terminal ignores the context
		text, _ := bufio.NewReader(in).ReadString('\n')
		line <- text
	}()
	select {
	case <-ctx.Done():
		return false, errors.New("interrupted; nothing was written")
	case text := <-line:
		answer := strings.ToLower(strings.TrimSpace(text))
		return answer == "yes" || answer == "y", nil
	}
}

// repair prints the faults of a pool and the changes that mend it, and makes these if that is agreed to. It reports
// false if nothing is wrong.
func (p *program) repair(ctx context.Context, o pool.Options, yes bool, devices ...string) (bool, error) {
	name := strings.Join(devices, ", ")
	p.Keeping()
	x, err := p.open(ctx, o, false, devices...)
	if err != nil {
		return false, err
	}
	closed := false
	defer func() {
		if !closed {
			_ = x.Close() // nothing was written
		}
	}()
	f, err := p.examine(ctx, x, name)
	if err != nil {
		return false, err
	}
	if !f.any() {
		fmt.Fprintf(p.Out, "%s: nothing to repair\n", name)
		return false, nil
	}
	fmt.Fprintf(p.Out, "%s: the repair writes superblocks and checkpoints again, and drops %s (pages: %d) in files: "+
		"%d\n",
		name, term.Size(float64(len(f.drop)*ctl.Page)), len(f.drop), f.files)
	if !yes {
		switch agreed, err := p.agreed(ctx, "repair "+name+"?"); {
		case err != nil:
			return false, verb.Failed(fmt.Errorf("%s: %w", name, err))
		case !agreed:
			return false, verb.Failed(fmt.Errorf("%s: not repaired; nothing was written", name))
		}
	}
	closed = true
	_, err = watched(context.WithoutCancel(ctx), p, "repairing", func(step func(done, all int64) error) (any, error) {
		return nil, x.Repair(f.drop, step) // to be given again if it is interrupted, so it is not
	})
	if err := errors.Join(err, x.Close()); err != nil {
		return false, verb.Failed(fmt.Errorf("%s: %w; the pool is as it was, or repaired: give the command again",
			name, err))
	}
	opened, _, err := pool.Open(o, devices...)
	if err != nil {
		return false, verb.Failed(err)
	}
	if f.survey != nil && !f.survey.Hopeless {
		done, mending := cfs.Mend(opened, cfs.Config{Now: time.Now})
		for _, m := range done {
			p.Note("%s: done: %s", name, m)
		}
		err = mending
	}
	if err = errors.Join(err, opened.Close()); err != nil {
		return false, verb.Failed(fmt.Errorf("%s: %w", name, err))
	}
	p.Note("%s: repaired", name)
	return true, nil
}
