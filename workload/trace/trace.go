// Package trace reads and writes block traces.
//
// [Open] detects the compression and the format of a file, or uses the given format, and returns a [Reader], which is a
// [workload.Source]: it streams, so a trace need not fit into memory, and its times are relative to the first record
// that it yields. [NewWriter] writes a trace. The formats are listed under [Format]; plain, gzip, bzip2, xz and zstd
// files can be read.
//
// Records are yielded in order of time. Formats that store records in order of completion (SYSTOR'17) are re-sorted
// within a bounded window, and the records of a format with whole-second timestamps (Tencent) are spread over each
// second by seed, in their order; [Reader.Notes] reports both. In other formats a time that runs backwards is an error.
//
// Memory: the window (64 Ki records of about 80 B by default), the records of one second for Tencent, up to 4096
// requests that await their completion for blkparse and blktrace, and the names of volumes that are not numbers.
//
// Sources of the format facts: the readme files of the SNIA IOTTA sets (MSR Cambridge, SYSTOR'17, K5cloud, Tencent CBS,
// FIU), the SPC trace file format specification 1.0.1, alibaba/block-traces, google-research-datasets/thesios, Linux's
// blktrace_api.h, blkparse(1), fio's HOWTO and iolog.c, and the sources of MQSim and DiskSim. The package leaves out
// the process, checksum and cache columns of the formats that have them, files inside tar archives, and table records
// that span several lines.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// Options configures reading. The zero value detects the format, tolerates no bad records and yields every volume.
type Options struct {
	Format     Format // Auto: detect
	Seed       uint64 // for spreading whole seconds
	SkipBad    int64  // number of bad records to skip and count; negative: unlimited
	Window     int    // records buffered to sort them by time; 0: the format's default, none for most
	AsRecorded bool   // file order and the file's timestamps: no sorting, no spreading; times may then run backwards
	Volume     string // only this volume, by the trace's own name or number; empty: all
	// Action is the blkparse or blktrace event that counts as the arrival, 'Q', 'D' or 'C'; 0: the earliest in the
	// file.
	Action byte
	CSV    CSV // the columns of a table; used if Columns are set, and the format is then csv
}

// defaultWindow is the number of buffered records for formats that need sorting.
const defaultWindow = 1 << 16

// place is the position of a record: its line (from 1) in a text file, or its byte offset (from 0) in a binary one.
type place int64

// parseError is a mistake in a trace, with its position.
type parseError struct {
	file   string
	line   int64 // from 1; 0 in a binary file
	offset int64 // binary file: offset of the record, after decompression
	err    error
}

func (e *parseError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err)
	}
	return fmt.Sprintf("%s: record at byte %d: %v", e.file, e.offset, e.err)
}

func (e *parseError) Unwrap() error { return e.err }

// Reader yields the records of a trace.
type Reader struct {
	name    string
	format  Format
	opts    Options
	closers []io.Closer

	input   input   // lines or binary records
	volumes volumes // their names
	sorter  *sorter // nil: the file is in order of time
	spread  *spread // nil: timestamps are fine enough
	pairs   *pairs  // nil: the format has no completions

	notes      []string // decisions made when the file was opened
	firstBad   []error  // the first bad records skipped
	skipped    int64
	outOfOrder int64
	read       int64 // valid requests in the file
	yielded    int64
	previous   instant // time of the last request read
	start      instant
	match      volumeFilter
	current    event // scratch of Next; a local variable would be allocated per record
	err        error
}

// input decodes events in file order. next returns false for an entry that is not an event.
type input interface {
	next(*event) (bool, error)
	// resume is called after next has returned a bad record, before the next call.
	resume() error
	// place returns the position of the event that next decoded last.
	place() place
	// notes returns remarks that only reading the file can reveal.
	notes() []string
}

// badRecord is an error of one record, after which reading can continue.
type badRecord struct{ err error }

func (b *badRecord) Error() string { return b.err.Error() }
func (b *badRecord) Unwrap() error { return b.err }

// Open opens the trace at path ("-": standard input), with all of its [Parts]. The caller closes the Reader.
func Open(path string, opts Options) (*Reader, error) {
	if path == "-" {
		return NewReader(os.Stdin, "standard input", opts)
	}
	parts, err := Parts(path)
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 {
		return openParts(path, parts, opts)
	}
	path = parts[0]
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if stat, err := file.Stat(); err == nil && stat.IsDir() {
		file.Close()
		return nil, fmt.Errorf("%s is a directory; give a trace file in it", path)
	}
	r, err := NewReader(file, path, opts)
	if err != nil {
		file.Close()
		return nil, err
	}
	r.closers = append(r.closers, file)
	r.missing(parts)
	return r, nil
}

// NewReader reads a trace from src; name identifies it in errors.
func NewReader(src io.Reader, name string, opts Options) (*Reader, error) {
	if src == nil {
		return nil, errors.New("trace: the reader is nil")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	head, closer, err := decompress(src, name)
	if err != nil {
		return nil, err
	}
	r := &Reader{name: name, opts: opts, format: opts.Format}
	r.match.want = opts.Volume
	if closer != nil {
		r.closers = append(r.closers, closer)
	}
	if r.format == Auto && opts.CSV.Columns != (Columns{}) {
		r.format = CSVTable
	}
	if r.format == Auto {
		format, why, err := detect(head, name)
		if err != nil {
			r.Close()
			if head.failed != nil {
				err = head.corrupt(head.failed)
			}
			return nil, err
		}
		r.format = format
		r.note("detected format %s: %s", format, why)
	}
	if err := r.prepare(head); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// check rejects invalid options.
func (o *Options) check() error {
	if o.Window < 0 {
		return fmt.Errorf("window of %d records; it must be 0 (the format's own) or more", o.Window)
	}
	if a := o.Action; a != 0 && a != actionQueued && a != actionIssued && a != actionCompleted {
		return fmt.Errorf("action %q; it must be Q, D or C", a)
	}
	if o.Format >= formatCount {
		return fmt.Errorf("%v is not a trace format", o.Format)
	}
	if o.Format == CSVTable || o.CSV != (CSV{}) {
		if o.Format != CSVTable && o.Format != Auto {
			return fmt.Errorf("columns are for tables (format csv); %v has its own columns", o.Format)
		}
		return o.CSV.Validate()
	}
	return nil
}

// prepare sets up the decoder and the stages after it.
func (r *Reader) prepare(head *headReader) error {
	if r.opts.Action != 0 && r.format != Blkparse && r.format != Blktrace {
		return fmt.Errorf("%s: an action can be chosen in blkparse and blktrace traces only, not in %s", r.name,
			r.format)
	}
	switch r.format {
	case VSCSI:
		in, err := newVSCSIInput(head, r.name)
		if err != nil {
			return err
		}
		r.input = in
	case Blktrace:
		if r.opts.Action == 0 {
			r.opts.Action = r.choose([]*headReader{head})
		}
		in, err := newBlktraceInput(head, r.name, r.opts.Action)
		if err != nil {
			return err
		}
		r.volumes.format = deviceName
		r.input = in
	case CSVTable:
		d, err := newCSVDecoder(&r.opts.CSV, head, &r.volumes)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		r.note("read as a table: %s", d.describe())
		r.input = newLineInput(head, r.format, d)
	default:
		if r.format == Blkparse && r.opts.Action == 0 {
			var why string
			r.opts.Action, why = chooseAction(head.lines())
			r.note("%s", why)
		}
		r.input = newLineInput(head, r.format, newLineDecoder(r.format, &r.opts, &r.volumes))
	}
	r.arrange()
	return nil
}

// arrange sets up the stages after the decoder.
func (r *Reader) arrange() {
	if (r.format == Blkparse || r.format == Blktrace) && r.opts.Action != actionCompleted {
		r.pairs = newPairs()
	}
	if r.opts.AsRecorded {
		return
	}
	window, order := r.opts.Window, descriptions[r.format].ordering
	if window == 0 && order != inOrder {
		window = defaultWindow
	}
	if window > 0 {
		r.sorter = newSorter(window)
	}
	if order == seconds {
		r.spread = &spread{seed: r.opts.Seed}
	}
}

func (r *Reader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// Next implements [workload.Source]. With AsRecorded, times can decrease.
func (r *Reader) Next(rec *workload.Record) error {
	if r.err != nil {
		return r.err
	}
	e := &r.current
	for {
		if err := r.pull(e); err != nil {
			r.err = r.atEnd(err)
			return r.err
		}
		if r.match.want == "" || r.match.accepts(e.volume, &r.volumes) {
			break
		}
	}
	if r.yielded == 0 {
		r.start = e.at
	}
	at, ok := e.at.since(r.start)
	if !ok {
		r.err = r.locate(e.place,
			fmt.Errorf("its time is %d s from the first record's; the maximum is 106 days", e.at.sec-r.start.sec))
		return r.err
	}
	r.yielded++
	*rec = workload.Record{Time: at, Response: e.response, Offset: e.offset, Size: e.size, Volume: e.volume, Op: e.op,
		Append: e.append}
	return nil
}

// pull returns the next request in order of time.
func (r *Reader) pull(e *event) error {
	if r.pairs != nil {
		return r.pairs.next(r, e)
	}
	return r.ordered(e)
}

// ordered returns the next event in order of time.
func (r *Reader) ordered(e *event) error {
	if r.spread != nil {
		return r.spread.next(r, e)
	}
	return r.sorted(e)
}

func (r *Reader) sorted(e *event) error {
	if r.sorter != nil {
		return r.sorter.next(r, e)
	}
	return r.filed(e)
}

// filed returns the next valid event in file order, and skips bad ones as far as permitted.
func (r *Reader) filed(e *event) error {
	for {
		*e = event{}
		ok, err := r.input.next(e)
		if err == nil && ok {
			e.place = r.input.place()
			err = r.check(e)
		}
		switch {
		case err == nil && !ok:
			continue
		case err == nil:
			return nil
		}
		var bad *badRecord
		if !errors.As(err, &bad) {
			return err
		}
		if err := r.skip(r.locate(r.input.place(), r.explain(bad.err))); err != nil {
			return err
		}
		if err := r.input.resume(); err != nil {
			return err
		}
	}
}

// explain adds the format's layout to an error about the number of columns.
func (r *Reader) explain(err error) error {
	var c *columnsError
	if errors.As(err, &c) {
		return fmt.Errorf("%w; a line of format %s reads %s", err, r.format, r.format.Layout())
	}
	return err
}

// locate adds the position to an error.
func (r *Reader) locate(p place, err error) error {
	if j, ok := r.input.(*joinedInput); ok {
		name, offset := j.at(p)
		return &parseError{file: name, offset: offset, err: err}
	}
	if r.format == VSCSI || r.format == Blktrace {
		return &parseError{file: r.name, offset: int64(p), err: err}
	}
	return &parseError{file: r.name, line: int64(p), err: err}
}

// Locate adds to an error the position of the record that Next returned last.
func (r *Reader) Locate(err error) error { return r.locate(r.current.place, err) }

// skip counts a bad record, or returns its error if no more may be skipped.
func (r *Reader) skip(err error) error {
	if r.opts.SkipBad >= 0 && r.skipped >= r.opts.SkipBad {
		if r.opts.SkipBad > 0 {
			return fmt.Errorf("%w (%d bad records before it were skipped, the maximum)", err, r.skipped)
		}
		return err
	}
	r.skipped++
	if len(r.firstBad) < 3 {
		r.firstBad = append(r.firstBad, err)
	}
	return nil
}

// Limits of a valid request; beyond them the trace is considered corrupt.
const (
	maxAddress = int64(1) << 56 // 64 PiB
	maxMoved   = int64(1) << 32 // for a read or a write
)

// check rejects impossible requests and times that run backwards.
func (r *Reader) check(e *event) error {
	aligned := descriptions[r.format].aligned
	switch {
	case e.size == 0 && e.op != block.Flush && !e.op.OfZone():
		return &badRecord{fmt.Errorf("a %s of 0 bytes; sizes must be positive", e.op)}
	case e.offset < 0 || e.size < 0 || e.offset > maxAddress || e.size > maxAddress-e.offset:
		return &badRecord{fmt.Errorf("a %s of %d bytes at byte %d extends past 64 PiB", e.op, e.size, e.offset)}
	case e.size > maxMoved && e.op != block.Trim:
		return &badRecord{fmt.Errorf("a %s of %d bytes; the maximum is 4 GiB", e.op, e.size)}
	case aligned && e.offset%sector != 0:
		return &badRecord{fmt.Errorf("offset %d is not a multiple of 512", e.offset)}
	case aligned && e.size%sector != 0:
		return &badRecord{fmt.Errorf("size %d is not a multiple of 512", e.size)}
	case e.response < workload.NoResponse:
		return &badRecord{fmt.Errorf("a negative response time")}
	}
	if e.completes {
		return nil
	}
	if r.read > 0 && e.at.before(r.previous) {
		if !r.opts.AsRecorded && r.sorter == nil {
			far := "more than 106 days"
			if back, ok := r.previous.since(e.at); ok {
				far = back.String()
			}
			return &badRecord{fmt.Errorf("its time is %s before the previous record's; times must not run backwards"+
				" in %s traces (a window of records sorts them, --window)", far, r.format)}
		}
		r.outOfOrder++
	}
	r.previous = e.at
	r.read++
	return nil
}

// atEnd turns the end of a trace without records into an error.
func (r *Reader) atEnd(err error) error {
	if err != io.EOF || r.yielded > 0 {
		return err
	}
	switch {
	case r.read > 0:
		return fmt.Errorf("%s: none of its %d requests goes to volume %q; it has %s", r.name, r.read, r.opts.Volume,
			r.match.seen())
	case r.skipped > 0:
		return fmt.Errorf("%s: no valid records; all %d were skipped, the first: %w", r.name, r.skipped, r.firstBad[0])
	}
	return fmt.Errorf("%s: no requests; a record of format %s reads %s", r.name, r.format, r.format.Layout())
}

// Format returns the format that was given or detected.
func (r *Reader) Format() Format { return r.format }

// Skipped returns the number of bad records skipped so far.
func (r *Reader) Skipped() int64 { return r.skipped }

// OutOfOrder returns the number of requests after one with a later time.
func (r *Reader) OutOfOrder() int64 { return r.outOfOrder }

// Start returns the time of the first record on the trace's clock: seconds since its epoch, and the rest.
func (r *Reader) Start() (seconds int64, rest units.Duration) {
	return r.start.sec, units.Duration(r.start.ps)
}

// VolumeName returns the trace's name for a record's volume.
func (r *Reader) VolumeName(id uint32) string { return r.volumes.name(id) }

// Notes returns the decisions, changes and skips so far, one sentence each.
func (r *Reader) Notes() []string {
	notes := append([]string(nil), r.notes...)
	if r.sorter != nil && descriptions[r.format].ordering == completion {
		notes = append(notes,
			fmt.Sprintf("%s records requests when they complete: sorted by arrival within a window of %d records; %d "+
				"followed a later one",
				r.format, r.sorter.window, r.outOfOrder))
	} else if r.sorter != nil && r.spread == nil {
		notes = append(notes,
			fmt.Sprintf("sorted by arrival within a window of %d records; %d followed a later one",
				r.sorter.window, r.outOfOrder))
	}
	if r.spread != nil {
		notes = append(notes,
			fmt.Sprintf("%s stamps whole seconds: sorted within a window of %d records (%d followed a later "+
				"one), then"+
				" the requests of a second are spread uniformly over it in order, by seed %d; times finer "+
				"than a second are synthetic",
				r.format, r.sorter.window, r.outOfOrder, r.spread.seed))
	}
	if r.pairs != nil && r.pairs.completed > 0 {
		notes = append(notes,
			fmt.Sprintf("%d of %d requests have their completion in the trace", r.pairs.completed, r.read))
	}
	notes = append(notes, r.input.notes()...)
	if r.skipped > 0 {
		text := fmt.Sprintf("skipped %d bad records; the first: %v", r.skipped, errors.Join(r.firstBad...))
		if r.skipped == 1 {
			text = fmt.Sprintf("skipped 1 bad record: %v", r.firstBad[0])
		}
		notes = append(notes, text)
	}
	return notes
}

// Close closes the file. The Reader's accessors remain usable.
func (r *Reader) Close() error {
	var first error
	for _, c := range r.closers {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	r.closers = nil
	return first
}
