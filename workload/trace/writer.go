package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// WriterOptions configures how a trace is written.
type WriterOptions struct {
	// Start and StartRest are the absolute time of record time zero, in seconds and the rest of the second, for formats
	// with absolute timestamps; [Reader.Start] returns it.
	Start     int64
	StartRest units.Duration
	// VolumeName returns the name of a volume, for formats that name them (msr, fio); nil: use the number.
	VolumeName func(uint32) string
	// LeaveOut drops requests that the format cannot represent (mostly trims and flushes) and counts them in a note,
	// instead of failing.
	LeaveOut bool
}

// Writer writes records as a trace. What the format cannot represent is an error or, if only precision is lost, a note.
type Writer struct {
	to      *bufio.Writer
	format  Format
	opts    WriterOptions
	encoder lineEncoder
	line    []byte
	written int64
	last    units.Duration

	renamed  []string // the first few volumes whose names became numbers
	renumber uint32   // last volume checked
	looked   bool
	leftOut  int64
	losses
}

// losses counts what the format cannot hold of the records that are written.
type losses struct {
	roundedTimes     int64
	noResponse       int64 // the format needs one and the record has none
	lostResponses    int64 // the record has one and the format has no column for it
	roundedResponses int64
}

// unsupported is the error of a record that the format cannot represent.
type unsupported struct{ message string }

func (u *unsupported) Error() string { return u.message }

// Writable lists the formats that can be written.
func Writable() []Format {
	return []Format{MSR, Systor, Tencent, Alibaba, SPC, FIU, K5cloud, MQSim, DiskSim, FioLog}
}

// NewWriter returns a writer to w. The caller calls Close, which does not close w.
func NewWriter(w io.Writer, format Format, opts WriterOptions) (*Writer, error) {
	if w == nil {
		return nil, errors.New("trace: the writer is nil")
	}
	out := &Writer{to: bufio.NewWriterSize(w, 1<<16), format: format, opts: opts, line: make([]byte, 0, 256)}
	switch format {
	case MSR:
		out.encoder = &msrEncoder{out}
	case Systor:
		out.encoder = &systorEncoder{out}
		out.line = append(out.line, descriptions[Systor].layout...)
	case Tencent:
		out.encoder = &tencentEncoder{out}
	case Alibaba:
		out.encoder = &alibabaEncoder{out}
	case SPC:
		out.encoder = &spcEncoder{out}
	case FIU:
		out.encoder = &fiuEncoder{out}
	case K5cloud:
		out.encoder = &k5cloudEncoder{out}
	case MQSim:
		out.encoder = &mqsimEncoder{out}
	case DiskSim:
		out.encoder = &disksimEncoder{out}
	case FioLog:
		out.encoder = &fioLogEncoder{out: out}
	default:
		list := make([]string, 0, len(Writable()))
		for _, f := range Writable() {
			list = append(list, f.String())
		}
		return nil, fmt.Errorf("format %v cannot be written; use one of %s", format, strings.Join(list, ", "))
	}
	if len(out.line) > 0 {
		out.to.Write(append(out.line, '\n'))
	}
	return out, nil
}

// Write writes one record. Records must be in order of time.
func (w *Writer) Write(r *workload.Record) error {
	if r.Time < w.last {
		return fmt.Errorf("record %d arrives at %v, before the previous record, at %v; traces are written in "+
			"order of time", w.written+1, r.Time, w.last)
	}
	if r.Append || r.Op.OfZone() {
		return fmt.Errorf("record %d is an append or a zone command, which no writable format supports", w.written+1)
	}
	if r.Offset < 0 || r.Size < 0 {
		return fmt.Errorf("record %d is for %d bytes at %d; use 0 or more", w.written+1, r.Size, r.Offset)
	}
	before := w.losses
	line, err := w.encoder.encode(w.line[:0], r)
	w.line = line
	if _, ok := err.(*unsupported); ok && w.opts.LeaveOut {
		w.losses = before
		w.leftOut++
		return nil
	}
	if err != nil {
		return fmt.Errorf("record %d cannot be written as %s: %w", w.written+1, w.format, err)
	}
	w.last = r.Time
	w.written++
	w.noteVolume(r.Volume)
	w.line = append(line, '\n')
	_, err = w.to.Write(w.line)
	return err
}

// Close flushes the buffer.
func (w *Writer) Close() error { return w.to.Flush() }

// Written returns the number of records written.
func (w *Writer) Written() int64 { return w.written }

// Notes lists what the format could not represent, one sentence each.
func (w *Writer) Notes() []string {
	var notes []string
	add := func(n int64, format string, args ...any) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d ", n, w.written+w.leftOut)+fmt.Sprintf(format, args...))
		}
	}
	add(w.leftOut, "records were left out: %s holds reads and writes of whole sectors only", w.format)
	add(w.roundedTimes, "times were rounded down: %s stamps to %s", w.format, descriptions[w.format].stamps)
	add(w.roundedResponses, "response times were rounded down to %s", descriptions[w.format].stamps)
	add(w.lostResponses, "response times were dropped: %s has no column for them", w.format)
	if w.format == MSR {
		add(w.noResponse, "records have no response time; it is written as 0")
	} else {
		add(w.noResponse, "records have no response time; the column is left empty")
	}
	if len(w.renamed) > 0 {
		notes = append(notes,
			fmt.Sprintf("%s numbers its volumes, so their names are lost: %s", w.format, strings.Join(w.renamed, ", ")))
	}
	if w.opts.Start != 0 && !w.keepsStart() {
		notes = append(notes,
			fmt.Sprintf("times count from the first record: %s keeps no absolute time (it began at %d s)", w.format,
				w.opts.Start))
	}
	if w.format == FIU && w.written > 0 {
		notes = append(notes, "process and content checksum are unknown; they are written as unknown and zeros")
	}
	return notes
}

// keepsStart reports whether the format has absolute timestamps.
func (w *Writer) keepsStart() bool {
	switch w.format {
	case MSR, Systor, Tencent, Alibaba, FIU:
		return true
	}
	return false
}

// noteVolume remembers the first few volumes whose names are lost in a format with numbered volumes.
func (w *Writer) noteVolume(id uint32) {
	if w.opts.VolumeName == nil || w.format == MSR || w.format == FioLog || w.looked && id == w.renumber {
		return
	}
	w.looked, w.renumber = true, id
	const most = 5
	if name := w.opts.VolumeName(id); len(w.renamed) < most && name != strconv.FormatUint(uint64(id), 10) {
		text := fmt.Sprintf("%d was %s", id, name)
		if !slices.Contains(w.renamed, text) {
			w.renamed = append(w.renamed, text)
		}
	}
}

// count counts a loss of information. It exists so that encoders read as a list of columns.
func (w *Writer) count(n *int64) { *n++ }

// dropResponse counts a response time that the format has no column for.
func (w *Writer) dropResponse(r *workload.Record) {
	if r.Response != workload.NoResponse {
		w.lostResponses++
	}
}

// cannot reports an operation that the format lacks.
func (w *Writer) cannot(op block.Op) error {
	return &unsupported{fmt.Sprintf("it has no %s; write another format (fio has them all)", op)}
}

// readWrite returns R or W, or 0 for other operations.
func (w *Writer) readWrite(op block.Op) byte {
	switch op {
	case block.Read:
		return 'R'
	case block.Write:
		return 'W'
	}
	return 0
}

// sectors returns a record's range in 512-byte sectors.
func (w *Writer) sectors(r *workload.Record) (first, count int64, err error) {
	if r.Offset%sector != 0 || r.Size%sector != 0 {
		return 0, 0, &unsupported{fmt.Sprintf("%d bytes at byte %d are not whole 512-byte sectors", r.Size, r.Offset)}
	}
	return r.Offset / sector, r.Size / sector, nil
}

// appendPlain appends the fields that follow the time in lines of MQSim and DiskSim: volume, first sector, number of
// sectors, and 1 for a read or 0 for a write, each preceded by a space.
func (w *Writer) appendPlain(dst []byte, r *workload.Record) ([]byte, error) {
	first, count, err := w.sectors(r)
	if err != nil {
		return dst, err
	}
	volume := uint64(r.Volume)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, first, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, count, 10)
	w.dropResponse(r)
	switch w.readWrite(r.Op) {
	case 'R':
		return append(dst, " 1"...), nil
	case 'W':
		return append(dst, " 0"...), nil
	}
	return dst, w.cannot(r.Op)
}

// absolute converts a record time to an absolute time.
func (w *Writer) absolute(t units.Duration) instant {
	at := durationInstant(t)
	at.sec += w.opts.Start
	at.ps += int64(w.opts.StartRest)
	if at.ps >= psPerSecond {
		at.sec++
		at.ps -= psPerSecond
	}
	return at
}

func durationInstant(t units.Duration) instant {
	return instant{int64(t) / psPerSecond, int64(t) % psPerSecond}
}

// ticks converts an absolute time to ticks of 1/perSecond s, rounded down.
func (w *Writer) ticks(t instant, perSecond int64) (int64, error) {
	if t.sec < 0 || t.sec > (1<<63-1)/perSecond-1 {
		return 0, absurdStamp(t)
	}
	return w.relative(t, perSecond), nil
}

// relative is ticks for a record's own time, which is always in range.
func (w *Writer) relative(t instant, perSecond int64) int64 {
	tick := psPerSecond / perSecond
	if t.ps%tick != 0 {
		w.roundedTimes++
	}
	return t.sec*perSecond + t.ps/tick
}

// appendSeconds appends an instant as decimal seconds, exactly, with at least this many decimals.
func (w *Writer) appendSeconds(dst []byte, t instant, decimals int) []byte {
	return w.appendDecimal(dst, uint64(t.sec), t.ps, 12, decimals)
}

// appendDecimal appends whole.fraction, where fraction counts 10^-places, without trailing zeros beyond the given
// decimals.
func (w *Writer) appendDecimal(dst []byte, whole uint64, fraction int64, places, decimals int) []byte {
	dst = strconv.AppendUint(dst, whole, 10)
	dst = append(dst, '.')
	start := len(dst)
	for range places {
		dst = append(dst, '0')
	}
	for i := places - 1; i >= 0; i-- {
		dst[start+i] = '0' + byte(fraction%10)
		fraction /= 10
	}
	for len(dst) > start+decimals && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// volumeName returns the name of a volume.
func (w *Writer) volumeName(id uint32) string {
	if w.opts.VolumeName != nil {
		return w.opts.VolumeName(id)
	}
	return strconv.FormatUint(uint64(id), 10)
}
