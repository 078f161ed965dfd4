package flashcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/internal/spelling"
	"farflash/internal/term"
)

func (p *program) flashSalvage() *cobra.Command {
	var f poolFlags
	cmd := &cobra.Command{
		Use:   "salvage FILE... DIR",
		Short: "Copy files out of a damaged pool",
		Long: `Copy every file of a pool to a new or empty directory, whatever state the pool is
in. The pool is not written to. If it cannot be opened because its records are
damaged, its map is rebuilt from the remaining ones. Unreadable parts become
holes. Files whose name is lost go to lost+found.

The report at the end lists the bytes of each file that are lost, or that may be
out of date because a record is missing; the exit code is then 1.`,
		Example: `  farflash flash salvage data.img rescued
  farflash flash salvage a.img b.img /mnt/rescued`,
		Args: verb.Arguments(2, -1, "the devices of one pool, and a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, dir := args[:len(args)-1], args[len(args)-1]
			p.Keeping()
			x, err := p.open(cmd.Context(), f.options(), true, devices...)
			if err != nil {
				return err
			}
			return errors.Join(p.salvage(cmd.Context(), x, dir, strings.Join(devices, ", ")), verb.Failed(x.Close()))
		},
	}
	f.register(cmd, mostMemory)
	return cmd
}

// rescue is a salvage in progress.
type rescue struct {
	pool  *ctl.Examined
	to    *os.Root // no name leads out of it
	lines []string
	lost  int64 // bytes
	step  func(bytes int64) error
	buf   []byte
}

// vacantDir makes a directory, or verifies that it is empty, and opens it.
func vacantDir(dir string) (*os.Root, error) {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		var all []os.DirEntry
		if all, err = os.ReadDir(dir); err == nil && len(all) > 0 {
			err = fmt.Errorf("%s is not empty: give a new directory", dir)
		}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

func (p *program) salvage(ctx context.Context, x *ctl.Examined, dir, name string) error {
	s, err := survey(x)
	switch {
	case err != nil:
		return verb.Failed(fmt.Errorf("%s: %w", name, err))
	case s == nil:
		return verb.BadInput(fmt.Errorf("%s: %w: there are no files to copy", name, cfs.ErrNoFS))
	}
	to, err := vacantDir(dir)
	if err != nil {
		return verb.BadInput(err)
	}
	defer func() { _ = to.Close() }() // nothing is written through it
	total, done := int64(0), int64(0)
	for _, e := range s.Entries {
		if e.Kind == cfs.Regular {
			_ = runs(x, e, func(from, to int64, held bool) error {
				if held {
					total += to - from
				}
				return nil
			})
		}
	}
	bar := p.Progress("salvaging", "bytes", false, "Ctrl-C stops and keeps the files copied so far")
	r := &rescue{pool: x, to: to, buf: make([]byte, 1<<20), step: func(n int64) error {
		done += n
		bar.Update(done, total, "")
		return ctx.Err()
	}}
	files, directories := 0, 0
	for _, e := range s.Entries {
		at := strings.TrimPrefix(e.Path, "/")
		if err = to.MkdirAll(path.Dir(at), 0o755); err == nil && e.Kind == cfs.Directory {
			directories++
			err = to.MkdirAll(at, 0o755)
		} else if err == nil {
			files++
			err = r.copy(at, e)
		}
		if err != nil {
			break
		}
	}
	bar.Stop()
	if err != nil {
		files-- // which is removed
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		return verb.Failed(fmt.Errorf("%s: %w: %d of its %d files and directories are in %s, all of them complete",
			name, err,
			files+directories, len(s.Entries), dir))
	}
	return p.reportSalvage(r, s, name,
		fmt.Sprintf("%s: %s and %s from %s, %s", dir, spelling.Plural(files, "file"), spelling.Plural(directories, "directory"), name,
			term.Size(float64(done))))
}

// reportSalvage prints what was copied, and what was lost.
func (p *program) reportSalvage(r *rescue, s *cfs.Survey, name, summary string) error {
	f := &findings{pool: r.pool, survey: s}
	f.records()
	for _, v := range s.Violations {
		f.sayf("file system: %v", v)
	}
	for _, line := range f.lines {
		fmt.Fprintf(p.Out, "%s: %s\n", name, strings.Replace(line, ", and will be written again without loss", "", 1))
	}
	stale := int64(0)
	for _, e := range s.Entries {
		all := outdated(r.pool, e)
		stale += all.bytes()
		for _, x := range all {
			r.lines = append(r.lines, fmt.Sprintf("%s: %v: may be out of date", e.Path, x))
		}
	}
	for _, line := range r.lines {
		fmt.Fprintf(p.Out, "%s: %s\n", name, line)
	}
	fmt.Fprintf(p.Out, "%s; %d bytes lost, %d may be out of date\n", summary, r.lost, stale)
	if r.lost > 0 || r.pool.Missing || r.pool.Doubtful > 0 || len(s.Violations) > 0 || len(r.lines) > 0 && stale == 0 {
		return verb.Failed(fmt.Errorf("%s: not all could be read", name))
	}
	return nil
}

// copy copies one file. It removes the copy if it is not complete.
func (r *rescue) copy(at string, e cfs.Status) (err error) {
	out, err := r.to.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, r.to.Remove(at))
		}
	}()
	var lost stretches
	err = runs(r.pool, e, func(from, to int64, held bool) error {
		for held && from < to {
			n := min(to-from, int64(len(r.buf)))
			if err := r.part(out, e.Base, from, n, &lost); err != nil {
				return err
			}
			if err := r.step(n); err != nil {
				return err
			}
			from += n
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range lost {
		r.lines = append(r.lines, fmt.Sprintf("%s: %v: lost", e.Path, s))
	}
	r.lost += lost.bytes()
	if err := out.Truncate(e.Size); err != nil {
		r.lines = append(r.lines, fmt.Sprintf("%s: its size of %d bytes: %v", e.Path, e.Size, err))
	}
	return nil
}

// part copies n bytes, page by page if they cannot be read together.
func (r *rescue) part(out *os.File, base uint64, from, n int64, lost *stretches) error {
	b := r.buf[:n]
	if r.pool.ReadAt(b, base+uint64(from)) == nil {
		return write(out, b, from)
	}
	for at := from; at < from+n; at += ctl.Page {
		b := r.buf[:min(ctl.Page, from+n-at)]
		if r.pool.ReadAt(b, base+uint64(at)) != nil {
			lost.add(at, at+int64(len(b)))
		} else if err := write(out, b, at); err != nil {
			return err
		}
	}
	return nil
}

// write writes the bytes that are not zeros.
func write(out *os.File, b []byte, at int64) error {
	if len(bytes.TrimLeft(b, "\x00")) == 0 {
		return nil
	}
	_, err := out.WriteAt(b, at)
	return err
}
