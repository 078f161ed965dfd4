package trace

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// headSize is the number of bytes available to detection, and the maximum length of a line.
const headSize = 1 << 16

// bufioFull is the error of ReadSlice for a line longer than headSize.
var bufioFull = bufio.ErrBufferFull

// headReader is the decompressed file, whose beginning can be inspected before it is read.
type headReader struct {
	*bufio.Reader
	head        []byte // the beginning; valid until the first read
	whole       bool   // head is the whole file
	name        string
	compression string // name, or empty
	failed      error  // decompressor error, other than the end of the file
}

// watched records read errors of the decompressor, because io.ReadFull cannot distinguish a damaged file from a short
// one.
type watched struct {
	src io.Reader
	to  *headReader
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.src.Read(p)
	if err != nil && err != io.EOF {
		w.to.failed = err
	}
	return n, err
}

// corrupt describes why the file cannot be read further.
func (h *headReader) corrupt(err error) error {
	if h.failed != nil {
		err = h.failed
	}
	if h.compression == "" {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	if errors.Is(err, errTrailing) {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the %s data is cut off; the file is truncated", h.name, h.compression)
	}
	return fmt.Errorf("%s: the %s data is damaged: %w", h.name, h.compression, err)
}

// lines returns the complete lines of the head.
func (h *headReader) lines() [][]byte {
	head := bytes.TrimPrefix(h.head, []byte("\xef\xbb\xbf"))
	if !h.whole {
		head = head[:bytes.LastIndexByte(head, '\n')+1]
	}
	lines := bytes.Split(head, []byte{'\n'})
	for i := range lines {
		lines[i] = bytes.TrimSuffix(lines[i], []byte{'\r'})
	}
	return lines
}

// xzEnd watches an xz stream for its footer, because the decoder does not notice if the file is truncated right before
// it.
type xzEnd struct {
	src     io.Reader
	content io.Reader
	tail    [2]byte // last two bytes, not counting zero padding
}

func (x *xzEnd) Read(p []byte) (int, error) {
	n, err := x.src.Read(p)
	for _, c := range p[:n] {
		if c != 0 {
			x.tail = [2]byte{x.tail[1], c}
		}
	}
	return n, err
}

// xzContent is the decompressed side of an xzEnd.
type xzContent struct{ *xzEnd }

func (x xzContent) Read(p []byte) (int, error) {
	n, err := x.content.Read(p)
	if err == io.EOF && x.tail != [2]byte{'Y', 'Z'} {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// errTrailing reports a gzip file followed by other data.
var errTrailing = errors.New("invalid data follow the gzip data; remove them, or compress the trace again")

// gzipMembers reads gzip data, possibly several members in sequence, and distinguishes other trailing data from
// truncation. Zeros at the end are padding, as gzip permits.
type gzipMembers struct {
	*gzip.Reader
	raw *bufio.Reader
	err error // about the data after the last member
}

func newGzipMembers(raw *bufio.Reader) (*gzipMembers, error) {
	z, err := gzip.NewReader(raw)
	if err == nil {
		z.Multistream(false)
	}
	return &gzipMembers{Reader: z, raw: raw}, err
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	for g.err == nil {
		n, err := g.Reader.Read(p)
		if err != io.EOF || n > 0 {
			if err == io.EOF {
				err = nil // it is returned again
			}
			return n, err
		}
		switch magic, err := g.raw.Peek(2); {
		case len(magic) == 0:
			g.err = err
		case len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b:
			if g.err = g.Reset(g.raw); g.err == nil {
				g.Multistream(false)
			}
		default:
			g.err = g.padding()
		}
	}
	return 0, g.err
}

// padding reads zeros up to the end.
func (g *gzipMembers) padding() error {
	for {
		c, err := g.raw.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return errTrailing
		}
	}
}

// decompress detects the compression by its magic number and returns the contents.
func decompress(src io.Reader, name string) (*headReader, io.Closer, error) {
	raw := bufio.NewReaderSize(src, 1<<16)
	magic, err := raw.Peek(6)
	if len(magic) == 0 {
		if err == io.EOF {
			return nil, nil, fmt.Errorf("%s is empty", name)
		}
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	h := &headReader{name: name}
	var content io.Reader = raw
	var closer io.Closer
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		h.compression = "gzip"
		content, err = newGzipMembers(raw)
	case bytes.HasPrefix(magic, []byte("BZh")) && len(magic) > 3 && magic[3] >= '1' && magic[3] <= '9':
		h.compression = "bzip2"
		content, err = bzip2.NewReader(raw), nil
	case bytes.HasPrefix(magic, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		h.compression = "xz"
		ended := &xzEnd{src: raw}
		if ended.content, err = xz.NewReader(ended); err == nil {
			content = xzContent{ended}
		}
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		h.compression = "zstd"
		var z *zstd.Decoder
		// A single decoder in the caller's goroutine; frames that require a window above 256 MiB are refused.
		z, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<28))
		if err == nil {
			content, closer = z, z.IOReadCloser()
		}
	default:
		err = nil
	}
	if err != nil {
		return nil, nil, h.corrupt(err)
	}
	h.Reader = bufio.NewReaderSize(watched{content, h}, headSize)
	h.head, err = h.Peek(headSize)
	if err != nil && err != io.EOF && len(h.head) == 0 {
		return nil, closer, h.corrupt(err)
	}
	h.whole = err == io.EOF
	if len(h.head) == 0 {
		return nil, closer, fmt.Errorf("%s is empty", name)
	}
	if len(h.head) > 262 && string(h.head[257:262]) == "ustar" {
		return nil, closer, fmt.Errorf("%s is a tar archive; unpack it and give a trace file", name)
	}
	return h, closer, nil
}
