package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Parts returns the files of the trace that a path names, in order. blktrace writes one file per processor: any of
// nvme0n1.blktrace.0, nvme0n1.blktrace.*, nvme0n1.blktrace and nvme0n1 names the whole trace. Any other path is a
// single file, whether or not it exists.
func Parts(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	_, err := os.Lstat(path)
	there := !errors.Is(err, fs.ErrNotExist)
	if device, _, ok := processor(path); ok && there {
		list := partsOf(device)
		if len(list) > 1 {
			return list, nil
		}
		return []string{path}, nil
	}
	if there {
		return []string{path}, nil
	}
	if list := partsOf(strings.TrimSuffix(path, partMark)); len(list) > 0 {
		return list, nil
	}
	if !strings.ContainsAny(path, "*?[") {
		return []string{path}, nil
	}
	list, err := filepath.Glob(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(list) == 0:
		return nil, fmt.Errorf("%s: no file matches", path)
	case len(list) == 1:
		return list, nil
	}
	device, _, _ := processor(list[0])
	for _, name := range list {
		if d, _, ok := processor(name); !ok || d != device {
			return nil, fmt.Errorf(
				"%s: %s and %s are not parts of one trace; only the files that blktrace writes for each processor of "+
					"a machine, such as nvme0n1.blktrace.0, are joined",
				path, list[0], name)
		}
	}
	slices.SortFunc(list, byProcessor)
	return list, nil
}

// partMark separates the name of a device from the number of a processor in blktrace's file names.
const partMark = ".blktrace"

// processor parses the name of a per-processor file of blktrace. It accepts the extension of a compressor.
func processor(path string) (device string, number int, ok bool) {
	i := strings.LastIndex(path, partMark+".")
	if i < 0 {
		return "", 0, false
	}
	text, ending, _ := strings.Cut(path[i+len(partMark)+1:], ".")
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 || !slices.Contains([]string{"", "gz", "bz2", "xz", "zst"}, ending) {
		return "", 0, false
	}
	return path[:i], number, true
}

func byProcessor(a, b string) int {
	_, m, _ := processor(a)
	_, n, _ := processor(b)
	return m - n
}

// partsOf lists the files that blktrace wrote for a device, by processor.
func partsOf(device string) []string {
	dir, base := filepath.Split(device)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if d, _, ok := processor(e.Name()); ok && d == base {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(list, byProcessor)
	return list
}

// missing notes processors without a file among the parts: blktrace writes one for each, even if it is empty.
func (r *Reader) missing(parts []string) {
	last := -1
	var lost []string
	for _, name := range parts {
		device, n, ok := processor(name)
		if !ok {
			return
		}
		for k := last + 1; k < n; k++ {
			if len(lost) < 8 {
				lost = append(lost, filepath.Base(device)+partMark+"."+strconv.Itoa(k))
			} else if len(lost) == 8 {
				lost = append(lost, "others")
			}
		}
		last = n
	}
	if len(lost) > 0 {
		r.note("missing: %s; blktrace writes a file for each processor, and the requests of the missing ones are not in the trace", strings.Join(lost, ", "))
	}
}

// openParts opens the files of one trace.
func openParts(name string, parts []string, opts Options) (*Reader, error) {
	if opts.Format == Auto {
		opts.Format = Blktrace
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	if opts.Format != Blktrace {
		return nil, fmt.Errorf(
			"%s: files of several processors are read as blktrace, not as %v; rename a file that is in "+
				"that format", name, opts.Format)
	}
	r := &Reader{name: name, opts: opts, format: Blktrace}
	r.match.want = opts.Volume
	j := &joinedInput{}
	err := r.open(parts, j)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.volumes.format = deviceName
	r.input = j
	r.arrange()
	return r, nil
}

// open creates an input for each part that is not empty.
func (r *Reader) open(parts []string, j *joinedInput) error {
	var heads []*headReader
	for _, name := range parts {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, f)
		if st, err := f.Stat(); err == nil && st.Size() == 0 {
			continue // a processor that issued no requests
		}
		head, closer, err := decompress(f, name)
		if closer != nil {
			r.closers = append(r.closers, closer)
		}
		if err != nil {
			return err
		}
		heads = append(heads, head)
		j.names = append(j.names, name)
	}
	if len(heads) == 0 {
		return fmt.Errorf("%s: all its %d files are empty", r.name, len(parts))
	}
	r.note("joined %d files of blktrace, one for each processor, by time", len(parts))
	r.missing(parts)
	if r.opts.Action == 0 {
		r.opts.Action = r.choose(heads)
	}
	for i, head := range heads {
		in, err := newBlktraceInput(head, j.names[i], r.opts.Action)
		if err != nil {
			return err
		}
		j.parts = append(j.parts, joinedPart{input: in})
	}
	return nil
}

// joinedInput yields the events of several files in order of time; events with equal times are ordered by file.
type joinedInput struct {
	names []string
	parts []joinedPart
	last  int   // the file with the last bad record
	where place // position of the last event
}

// joinedPart is one of the files, with its next event.
type joinedPart struct {
	input *blktraceInput
	next  event
	at    place
	have  bool
	ended bool
}

// partShift is the position of the file number in a place; the lower bits are the offset, because files of blktrace are
// shorter than 2^48 bytes.
const partShift = 48

func (j *joinedInput) at(p place) (name string, offset int64) {
	return j.names[p>>partShift], int64(p & (1<<partShift - 1))
}

func (j *joinedInput) next(e *event) (bool, error) {
	first := -1
	for i := range j.parts {
		p := &j.parts[i]
		if !p.have && !p.ended {
			if err := p.read(); err != nil {
				j.last, j.where = i, place(i)<<partShift|p.at
				return false, err
			}
		}
		if p.have && (first < 0 || p.next.at.before(j.parts[first].next.at)) {
			first = i
		}
	}
	if first < 0 {
		return false, io.EOF
	}
	p := &j.parts[first]
	*e, p.have = p.next, false
	j.where = place(first)<<partShift | p.at
	return true, nil
}

// read advances to the part's next event.
func (p *joinedPart) read() error {
	for {
		p.next = event{}
		ok, err := p.input.next(&p.next)
		p.at = p.input.place()
		switch {
		case err == io.EOF:
			p.ended = true
			return nil
		case err != nil:
			return err
		case ok:
			p.have = true
			return nil
		}
	}
}

func (j *joinedInput) resume() error { return j.parts[j.last].input.resume() }
func (j *joinedInput) place() place  { return j.where }

func (j *joinedInput) notes() []string {
	return j.parts[0].input.notes()
}
