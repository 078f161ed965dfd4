package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// lineInput feeds lines to a text decoder.
type lineInput struct {
	in      *headReader
	format  Format
	decoder lineDecoder
	line    int64
	partial bool // the last line had no terminator
	tooLong bool // the rest of a line must be skipped
}

func newLineInput(in *headReader, format Format, decoder lineDecoder) *lineInput {
	return &lineInput{in: in, format: format, decoder: decoder}
}

func (l *lineInput) next(e *event) (bool, error) {
	line, err := l.in.ReadSlice('\n')
	switch {
	case err == nil:
		line = line[:len(line)-1]
	case err == bufioFull:
		l.line++
		l.tooLong = true
		return false, &badRecord{fmt.Errorf("the line is longer than %d bytes", headSize)}
	case err == io.EOF && len(line) > 0:
		l.partial = true
	case err == io.EOF:
		return false, io.EOF
	default:
		return false, l.in.corrupt(err)
	}
	l.line++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if l.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		return false, nil
	}
	ok, err := l.decoder.decode(line, e)
	if err != nil {
		if l.partial {
			err = fmt.Errorf("%w; the file ends within this line", err)
		}
		return false, &badRecord{err}
	}
	return ok, nil
}

func (l *lineInput) resume() error {
	for l.tooLong {
		_, err := l.in.ReadSlice('\n')
		if err == bufioFull {
			continue
		}
		l.tooLong = false
		if err != nil && err != io.EOF {
			return l.in.corrupt(err)
		}
	}
	return nil
}

func (l *lineInput) place() place { return place(l.line) }

func (l *lineInput) notes() []string {
	var notes []string
	if l.partial {
		notes = append(notes, "the last line has no end; if the file was cut off, its last number may be cut too")
	}
	if t, ok := l.decoder.(*tectonicDecoder); ok && t.several > 0 {
		notes = append(notes,
			fmt.Sprintf("%d records stand for several operations (op_count); each is read as one", t.several))
	}
	if r, ok := l.decoder.(*recordedDecoder); ok && r.rounded > 0 {
		notes = append(notes, fmt.Sprintf("not for whole sectors of %v: %s; each is read as all sectors that it touches",
			units.Sector, spelling.Plural(int(r.rounded), "request")))
	}
	if f, ok := l.decoder.(*fioLogDecoder); ok && f.version == 2 {
		notes = append(notes, "version 2 of fio's log has no times: arrivals advance by its wait lines only")
	}
	return notes
}

// vscsiInput reads records of a fixed size.
type vscsiInput struct {
	in      *headReader
	decoder vscsiDecoder
	buffer  [vscsiSize2]byte
	offset  int64 // of the next record
	at      int64 // of the record read last
}

func newVSCSIInput(in *headReader, name string) (*vscsiInput, error) {
	v := &vscsiInput{in: in}
	v.decoder.version = vscsiVersion(in.head)
	if v.decoder.version == 0 {
		return nil, &parseError{file: name,
			err: errors.New("no vscsi record; the high byte of its version field must be 1 or 2")}
	}
	return v, nil
}

func (v *vscsiInput) next(e *event) (bool, error) {
	b := v.buffer[:v.decoder.size()]
	v.at = v.offset
	n, err := io.ReadFull(v.in, b)
	v.offset += int64(n)
	if err != nil {
		return false, truncated(v.in, err, n, len(b))
	}
	ok, err := v.decoder.decode(b, e)
	if err != nil {
		err = &badRecord{err}
	}
	return ok, err
}

// truncated classifies the error of reading a record of size bytes: the end of the file, a bad last record, or another
// error.
func truncated(in *headReader, err error, n, size int) error {
	switch err {
	case io.EOF:
		return io.EOF
	case io.ErrUnexpectedEOF:
		if in.failed == nil {
			return &badRecord{fmt.Errorf("the file ends within it, after %d of %d bytes", n, size)}
		}
	}
	return in.corrupt(err)
}

func (v *vscsiInput) resume() error { return nil }
func (v *vscsiInput) place() place  { return place(v.at) }

func (v *vscsiInput) notes() []string {
	if v.decoder.other == 0 {
		return nil
	}
	return []string{fmt.Sprintf("left out %d SCSI commands that neither read, write nor flush", v.decoder.other)}
}

// blktraceInput reads headers and skips their payloads.
type blktraceInput struct {
	in      *headReader
	decoder blktraceDecoder
	buffer  [blktraceHeader]byte
	offset  int64
	at      int64
	lost    bool // the last header was invalid: search for the next one
}

func newBlktraceInput(in *headReader, name string, action byte) (*blktraceInput, error) {
	order := blktraceOrder(in.head)
	if order == nil {
		return nil, &parseError{file: name,
			err: fmt.Errorf("no blktrace header; its magic number is %#08x", blktraceMagic|blktraceVersion)}
	}
	return &blktraceInput{in: in, decoder: blktraceDecoder{order: order, action: action}}, nil
}

func (b *blktraceInput) next(e *event) (bool, error) {
	b.at = b.offset
	n, err := io.ReadFull(b.in, b.buffer[:])
	b.offset += int64(n)
	if err != nil {
		return false, truncated(b.in, err, n, len(b.buffer))
	}
	payload, err := b.decoder.payload(b.buffer[:])
	if err != nil {
		b.lost = true
		return false, &badRecord{err}
	}
	n, err = b.in.Discard(payload)
	b.offset += int64(n)
	if err != nil {
		if err == io.EOF && b.in.failed == nil {
			return false, &badRecord{fmt.Errorf("the file ends within its payload, after %d of %d bytes", n, payload)}
		}
		return false, b.in.corrupt(err)
	}
	ok, err := b.decoder.decode(b.buffer[:], e)
	if err != nil {
		err = &badRecord{err}
	}
	return ok, err
}

// resume searches for the next magic number after an invalid header.
func (b *blktraceInput) resume() error {
	for b.lost {
		head, err := b.in.Peek(4)
		if len(head) < 4 {
			if err != io.EOF {
				return b.in.corrupt(err)
			}
			_, err = b.in.Discard(len(head)) // or they would be a second bad record
			return err
		}
		if blktraceOrder(head) == b.decoder.order {
			b.lost = false
			return nil
		}
		if _, err := b.in.Discard(1); err != nil {
			return b.in.corrupt(err)
		}
		b.offset++
	}
	return nil
}

func (b *blktraceInput) place() place { return place(b.at) }

func (b *blktraceInput) notes() []string {
	if b.decoder.order == binary.BigEndian {
		return []string{"the trace was written on a big-endian machine"}
	}
	return nil
}
