package trace

import (
	"farflash/workload"
)

// lineDecoder decodes one line of a text format. The reader calls it for every line, in order, without the line
// terminator.
//
// It returns true when it has filled in the event, which was zero, false when the line holds none (a header, a comment,
// an event that is not a request), or an error that names the invalid field and the expected value. It retains no
// reference to the line.
type lineDecoder interface {
	decode(line []byte, e *event) (bool, error)
}

// lineEncoder writes records of one text format. The writer calls it once per record, in order of time.
//
// It appends one line without its terminator to dst and returns the extended slice, or an error if the record cannot be
// represented.
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
	case Recorded:
		return &recordedDecoder{csv: csvDecoder{volumes: v, cfg: &CSV{}, separator: ',', units: [2]int64{1, 1},
			at: [cols]int{colTime: 0, colOp: 1, colVolume: 2, colOffset: 3, colSize: 4, colResponse: 5}}}
	case FioLog:
		return &fioLogDecoder{volumes: v}
	}
	return nil
}
