package trace

import (
	"fmt"

	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/workload/trace/record"
)

// Format is a trace file format.
type Format uint8

// The formats. Auto requests detection.
const (
	Auto        Format = iota // detected from the file
	MSR                       // Microsoft Research Cambridge (Narayanan et al., FAST'08)
	Systor                    // Fujitsu VDI, SYSTOR'17 (Lee et al.)
	Tencent                   // cloud block store of Tencent, CBS (Zhang et al., ATC'20)
	Alibaba                   // block traces of Alibaba, 2020 (Li et al., IISWC'20)
	SPC                       // Storage Performance Council trace file format 1.0
	FIU                       // Florida International University, SRCMap and IODedup
	K5cloud                   // Fujitsu K5 cloud service (Oe et al.)
	Tectonic                  // Meta Tectonic, as published with Baleen (FAST'24)
	Thesios                   // Google Thesios (ASPLOS'24)
	VSCSI                     // CloudPhysics vscsi, versions 1 and 2
	MQSim                     // input of the simulator MQSim (FAST'18)
	DiskSim                   // ASCII input of the simulator DiskSim 4
	Blkparse                  // text output of blkparse
	Blktrace                  // binary output of blktrace
	FioLog                    // fio I/O log, versions 2 and 3
	Recorded                  // recording of farflash flash serve
	CSVTable                  // any table, with columns
	formatCount               // number of formats
)

// description holds the properties of a format besides its decoder.
type description struct {
	name     string
	layout   string // fields of a record, for error messages
	stamps   string // resolution of its times
	ordering ordering
	aligned  bool // offsets and sizes are multiples of 512 bytes
}

// ordering is the relation between the times of a format's records and their order in the file.
type ordering uint8

const (
	inOrder    ordering = iota // times do not decrease
	completion                 // in order of completion: re-sorted within a window
	seconds                    // whole seconds: sorted within a window, then spread over the second
)

var descriptions = [formatCount]description{
	Auto: {name: "auto"},
	MSR: {name: "msr", aligned: true, stamps: "100 ns",
		layout: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"},
	Systor: {name: "systor", aligned: true, stamps: "1 us", ordering: completion,
		layout: "Timestamp,Response,IOType,LUN,Offset,Size"},
	Tencent: {name: "tencent", aligned: true, stamps: "1 s", ordering: seconds,
		layout: "Timestamp,Offset,Size,IOType,VolumeID"},
	Alibaba: {name: "alibaba", aligned: true, stamps: "1 us",
		layout: "device_id,opcode,offset,length,timestamp"},
	SPC: {name: "spc", aligned: true, stamps: "1 us",
		layout: "ASU,LBA,Size,Opcode,Timestamp"},
	FIU: {name: "fiu", aligned: true, stamps: "1 ns",
		layout: "timestamp pid process lba size op major minor md5"},
	K5cloud: {name: "k5cloud", aligned: true, stamps: "as printed",
		layout: "VolumeID,Timestamp,Type,Offset,Length"},
	Tectonic: {name: "tectonic", stamps: "as printed",
		layout: "block_id io_offset io_size op_time op_name ... (8, 9 or 10 columns)"},
	Thesios: {name: "thesios", stamps: "as printed",
		layout: "the 17 columns that its header names"},
	VSCSI: {name: "vscsi", aligned: true, stamps: "1 us",
		layout: "32-byte (version 1) or 40-byte (version 2) records"},
	MQSim: {name: "mqsim", aligned: true, stamps: "1 ns",
		layout: "time_ns device first_sector sectors type(0 write, 1 read)"},
	DiskSim: {name: "disksim", aligned: true, stamps: "as printed",
		layout: "time_ms device block blocks flags(bit 0: read)"},
	Blkparse: {name: "blkparse", aligned: true, stamps: "1 ns",
		layout: "major,minor cpu sequence time pid action RWBS sector + sectors [process]"},
	Blktrace: {name: "blktrace", aligned: true, stamps: "1 ns",
		layout: "48-byte records and their payloads"},
	FioLog: {name: "fio", stamps: "1 us",
		layout: "timestamp_us file action offset length, after the line \"fio version 3 iolog\""},
	Recorded: {name: "farflash", stamps: "1 ns", ordering: completion, layout: record.Header},
	CSVTable: {name: "csv", stamps: "as printed",
		layout: "the columns that are named with columns, such as columns: {time: Timestamp, op: Type, offset: LBA, " +
			"size: Bytes}"},
}

func (f Format) String() string {
	if f < formatCount {
		return descriptions[f].name
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// ParseFormat parses a format's name.
func ParseFormat(s string) (Format, error) {
	for f := range descriptions {
		if descriptions[f].name == s {
			return Format(f), nil
		}
	}
	return Auto, &units.TextError{Text: s, Is: "is not a trace format", Use: Auto.Wanted(),
		Near: spelling.Nearest(s, names())}
}

// names lists the names of all formats except auto.
func names() []string {
	list := make([]string, 0, formatCount)
	for f := MSR; f < formatCount; f++ {
		list = append(list, f.String())
	}
	return list
}

// Formats returns all formats that can be read.
func Formats() []Format {
	list := make([]Format, 0, formatCount)
	for f := MSR; f < formatCount; f++ {
		list = append(list, f)
	}
	return list
}

// Layout describes a record of the format in one line; "" for no format.
func (f Format) Layout() string {
	if f >= formatCount {
		return ""
	}
	return descriptions[f].layout
}

// Wanted describes the accepted text.
func (Format) Wanted() string { return "auto, " + spelling.OrList(names()) }

func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func (f *Format) UnmarshalText(text []byte) error {
	v, err := ParseFormat(string(text))
	if err == nil {
		*f = v
	}
	return err
}
