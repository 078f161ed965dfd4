package trace

import (
	"farflash/workload"
)

// lineDecoder decodes one line of a text format. The reader calls it for every line, in order, without the line's end.
//
// It returns true when it has filled in the event, false when the line holds none (a header, a comment, an event that
// is no request), or an error that says which field is wrong and what it must be. It keeps no reference to the line.
type lineDecoder interface {
	decode(line []byte, e *event) (bool, error)
}

// lineEncoder writes records of one text format. The writer calls it once a record, in order of time.
//
// It appends one line without its end to dst and returns the extended slice, or an error when the record cannot be
// written.
type lineEncoder interface {
	encode(dst []byte, r *workload.Record) ([]byte, error)
}

// newLineDecoder returns the decoder of a text format, or nil for the binary ones.
func newLineDecoder(f Format, opts *Options, v *volumes) lineDecoder {
	switch f {
	case MSR:
		return &msrDecoder{volumes: v}
	case Systor:
		return &systorDecoder{}
	case Tencent:
		return &tencentDecoder{}
	case Alibaba:
		return &alibabaDecoder{}
	case SPC:
		return &spcDecoder{}
	case FIU:
		v.format = deviceName
		return &fiuDecoder{}
	case K5cloud:
		return &k5cloudDecoder{}
	case Tectonic:
		return &tectonicDecoder{volumes: v}
	case Thesios:
		return &thesiosDecoder{volumes: v}
	case MQSim:
		return &mqsimDecoder{}
	case DiskSim:
		return &disksimDecoder{}
	case Blkparse:
		v.format = deviceName
		return &blkparseDecoder{action: opts.Action}
	case FioLog:
		return &fioLogDecoder{volumes: v}
	}
	return nil
}
