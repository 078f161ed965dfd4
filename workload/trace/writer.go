package trace

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// WriterOptions says how a trace is written.
type WriterOptions struct {
	// Start is the absolute time of record time zero, seconds and the rest of the second, for the formats that stamp
	// absolute times; [Reader.Start] gives it.
	Start     int64
	StartRest units.Duration
	// VolumeName names a volume for the formats that name them (msr, fio); nil: the number.
	VolumeName func(uint32) string
	// LeaveOut drops requests that the format cannot hold (trims and flushes, mostly) and counts them in a note,
	// instead of failing.
	LeaveOut bool
}

// Writer writes records as a trace of one format. What the format cannot hold is an error, or where it loses only
// precision a note; nothing is lost silently.
type Writer struct {
	to      *bufio.Writer
	format  Format
	opts    WriterOptions
	encoder lineEncoder
	line    []byte
	written int64
	last    units.Duration

	renamed          []string // volumes whose names became numbers, the first few
	renumber         uint32   // the latest volume looked at
	looked           bool
	leftOut          int64
	roundedTimes     int64
	noResponse       int64 // the format wants one and the record has none
	lostResponses    int64 // the record has one and the format keeps none
	roundedResponses int64
}

// unsupported marks a record that the format cannot hold.
type unsupported struct{ message string }

func (u *unsupported) Error() string { return u.message }

// Writable lists the formats that can be written.
func Writable() []Format {
	return []Format{MSR, Systor, Tencent, Alibaba, SPC, FIU, K5cloud, MQSim, DiskSim, FioLog}
}

// NewWriter writes a trace of the given format to w. The caller calls Close at the end, which does not close w.
func NewWriter(w io.Writer, format Format, opts WriterOptions) (*Writer, error) {
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

// Write writes one record. Records come in order of time.
func (w *Writer) Write(r *workload.Record) error {
	if r.Time < w.last {
		return fmt.Errorf("record %d arrives at %v, before the one written ahead of it at %v; traces are written in "+
			"order of time", w.written+1, r.Time, w.last)
	}
	if r.Append || r.Op.OfZone() {
		return fmt.Errorf("record %d is an append, or about a zone, which no format has that is written", w.written+1)
	}
	line, err := w.encoder.encode(w.line[:0], r)
	w.line = line
	if _, ok := err.(*unsupported); ok && w.opts.LeaveOut {
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

// Close writes what is buffered.
func (w *Writer) Close() error { return w.to.Flush() }

// Written returns how many records were written.
func (w *Writer) Written() int64 { return w.written }

// Notes says what the format could not hold, one sentence each.
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

// keepsStart reports whether the format stamps absolute times.
func (w *Writer) keepsStart() bool {
	switch w.format {
	case MSR, Systor, Tencent, Alibaba, FIU:
		return true
	}
	return false
}

// noteVolume remembers the first few volumes whose names a numbering format loses.
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

// count counts an imperfection. It exists so that encoders read as a list of columns.
func (w *Writer) count(n *int64) { *n++ }

// dropResponse counts a response time that the format has no column for.
func (w *Writer) dropResponse(r *workload.Record) {
	if r.Response != workload.NoResponse {
		w.lostResponses++
	}
}

// cannot says that the format has no such operation.
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

// sectors returns a record's place in 512-byte sectors.
func (w *Writer) sectors(r *workload.Record) (first, count int64, err error) {
	if r.Offset%sector != 0 || r.Size%sector != 0 {
		return 0, 0, &unsupported{fmt.Sprintf("%d bytes at byte %d are no whole 512-byte sectors", r.Size, r.Offset)}
	}
	return r.Offset / sector, r.Size / sector, nil
}

// appendPlain writes what MQSim's and DiskSim's lines have behind the time: volume, first sector, sectors, and 1 for
// a read or 0 for a write, with spaces ahead of each.
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

// absolute returns the absolute time of a record time.
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

// ticks returns an instant in ticks, perSecond of them to the second, rounded down.
func (w *Writer) ticks(t instant, perSecond int64) (int64, error) {
	if t.sec < 0 || t.sec > (1<<63-1)/perSecond-1 {
		return 0, absurdStamp(t)
	}
	tick := psPerSecond / perSecond
	if t.ps%tick != 0 {
		w.roundedTimes++
	}
	return t.sec*perSecond + t.ps/tick, nil
}

// appendSeconds writes an instant as decimal seconds, exactly, with at least so many decimals.
func (w *Writer) appendSeconds(dst []byte, t instant, decimals int) []byte {
	return w.appendDecimal(dst, uint64(t.sec), t.ps, 12, decimals)
}

// appendDecimal writes whole.fraction, where fraction counts 10^-places, without trailing zeros beyond the given
// decimals.
func (w *Writer) appendDecimal(dst []byte, whole uint64, fraction int64, places, decimals int) []byte {
	dst = strconv.AppendUint(dst, whole, 10)
	dst = append(dst, '.')
	start := len(dst)
	for range places {
		dst = append(dst, '0')
	}
	for i := places - 1; i >= 0 && fraction > 0; i-- {
		dst[start+i] = '0' + byte(fraction%10)
		fraction /= 10
	}
	for len(dst) > start+decimals && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// volumeName names a volume.
func (w *Writer) volumeName(id uint32) string {
	if w.opts.VolumeName != nil {
		return w.opts.VolumeName(id)
	}
	return strconv.FormatUint(uint64(id), 10)
}

// Copy writes all of src and closes the writer, and returns how many records were written.
func Copy(w *Writer, src workload.Source) (int64, error) {
	var r workload.Record
	for {
		err := src.Next(&r)
		if err == io.EOF {
			return w.written, w.Close()
		}
		if err == nil {
			err = w.Write(&r)
		}
		if err != nil {
			return w.written, err
		}
	}
}
