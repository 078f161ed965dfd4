package trace

import (
	"fmt"
	"strings"
	"testing"
)

// spoiled is a field with a value that its format refuses, and the error; no error if the value is just possible.
type spoiled struct {
	column int
	text   string
	want   string
}

// lines has a valid line of each text format, and each of its fields spoiled.
var lines = []struct {
	format    Format
	before    string // lines above
	good      string
	separator string
	spoiled   []spoiled
}{
	{MSR, "", "128166372003061629,web,3,Read,4096,8192,1331", ",", []spoiled{
		{0, "1e9", `Timestamp is "1e9"; it must be a whole number of 100 ns ticks since 1601 (Windows filetime)`},
		{1, "", "Hostname is empty; it must be a name"},
		{2, "x", `DiskNumber is "x"; it must be a whole number`},
		{3, "Trim", `Type is "Trim"; it must be Read or Write`},
		{4, "-1", `Offset is "-1"; it must be a whole number of bytes`},
		{5, "8k", `Size is "8k"; it must be a whole number of bytes`},
		{6, "", "ResponseTime is empty; it must be a whole number of 100 ns ticks"},
		{6, "92233720368547", ""},
		{6, "92233720368548", `ResponseTime is "92233720368548"`}, // 2^63 ps are 92233720368547.7 ticks
		{6, "1331,9", "8 columns instead of 7"},
	}},
	{Systor, "", "1456095145.5,0.25,R,3,8192,4096", ",", []spoiled{
		{0, "-1", `Timestamp is "-1"; it must be a decimal number of seconds`},
		{1, "9223371.9", ""},
		{1, "5", ""},
		{1, "x", `Response is "x"`},
		{1, "9223373", `Response is "9223373"; it must be a decimal number of seconds, or empty`},
		{2, "D", `IOType is "D"; it must be R or W`},
		{3, "4294967296", `LUN is "4294967296"; it must be a whole number`},
		{4, "x", `Offset is "x"; it must be a whole number of bytes`},
		{5, "y", `Size is "y"; it must be a whole number of bytes`},
		{5, "4096,", "7 columns instead of 6"},
	}},
	{Tencent, "", "1538323200,16,8,1,20", ",", []spoiled{
		{0, "1.5", `Timestamp is "1.5"; it must be a whole number of seconds`},
		{1, "x", `Offset is "x"; it must be a whole number of 512-byte sectors`},
		{1, "140737488355328", "a write of 4096 bytes at byte 72057594037927936 extends past 64 PiB"},
		{1, "18014398509481984", `Offset is "18014398509481984"`}, // 2^54 sectors are 2^63 bytes
		{2, "x", `Size is "x"; it must be a whole number of 512-byte sectors`},
		{2, "18014398509481984", `Size is "18014398509481984"`},
		{3, "01", `IOType is "01"; it must be 0 (read) or 1 (write)`},
		{3, "10", `IOType is "10"; it must be 0 (read) or 1 (write)`},
		{4, "v", `VolumeID is "v"; it must be a whole number`},
		{4, "20,1", "6 columns instead of 5"},
	}},
	{Alibaba, "", "419,W,8192,16384,1577808144360767", ",", []spoiled{
		{0, "x", `device_id is "x"; it must be a whole number`},
		{1, "RW", `opcode is "RW"; it must be R or W`},
		{2, "x", `offset is "x"; it must be a whole number of bytes`},
		{3, "x", `length is "x"; it must be a whole number of bytes`},
		{4, "x", `timestamp is "x"; it must be a whole number of microseconds`},
	}},
	{SPC, "", "0,8,4096,r,0.5,more", ",", []spoiled{
		{0, "x", `ASU is "x"; it must be a whole number`},
		{1, "x", `LBA is "x"; it must be a whole number of 512-byte blocks`},
		{1, "18014398509481984", `LBA is "18014398509481984"`},
		{2, "x", `Size is "x"; it must be a whole number of bytes`},
		{3, "x", `Opcode is "x"; it must be R or W`},
		{4, "x", `Timestamp is "x"; it must be a decimal number of seconds`},
	}},
	{FIU, "", "89967404415337 4892 syslogd 9042 8 W 6 5 531e", " ", []spoiled{
		{0, "x", `timestamp is "x"; it must be a whole number of nanoseconds`},
		{1, "x", `pid is "x"; it must be a whole number`},
		{3, "x", `lba is "x"; it must be a whole number of 512-byte sectors`},
		{4, "x", `size is "x"; it must be a whole number of 512-byte sectors`},
		{5, "x", `op is "x"; it must be R or W`},
		{6, "4095", ""},
		{6, "4096", `device "4096","5" is not a major and minor number`}, // the kernel has 12 bits and 20
		{7, "1048575", ""},
		{7, "1048576", `device "6","1048576" is not a major and minor number`},
		{7, "x", `device "6","x" is not a major and minor number`},
		{2, strings.Repeat("a ", 24), ""},
		{2, strings.Repeat("a ", 25), "33 columns instead of 9"},
	}},
	{K5cloud, "", "7,0.25,R,1048576,4096", ",", []spoiled{
		{0, "x", `VolumeID is "x"; it must be a whole number`},
		{1, "x", `Timestamp is "x"; it must be a decimal number of seconds`},
		{2, "x", `Type is "x"; it must be R or W`},
		{3, "x", `Offset is "x"; it must be a whole number of bytes`},
		{4, "x", `Length is "x"; it must be a whole number of bytes`},
		{4, "1,2", "6 columns instead of 5"},
	}},
	{Tectonic, "", "3 100 5000 1600000000.5 1 p 4 5", " ", []spoiled{
		{0, "x", `block_id is "x"; it must be a whole number`},
		{0, "1099511627774", "a read of 5000 bytes at byte 9223372036837998692 extends past 64 PiB"},
		{0, "1099511627775", "block_id 1099511627775 is outside the address space: with blocks of 8 MiB the maximum " +
			"is 1099511627774"},
		{1, "8388608", ""},
		{1, "8388609", `io_offset is "8388609"; it must be a number of bytes within a block of 8 MiB`},
		{2, "x", `io_size is "x"; it must be a whole number of bytes`},
		{3, "x", `op_time is "x"; it must be a decimal number of seconds`},
		{4, "7", `op_name is "7"; it must be 1, 2 or 5 (get) or 3, 4 or 6 (put)`},
		{4, "0", `op_name is "0"; it must be 1, 2 or 5 (get) or 3, 4 or 6 (put)`},
		{7, "", "7 columns instead of 8, 9 or 10"},
		{7, "5 6 7 8", "11 columns instead of 8, 9 or 10"},
	}},
	{Tectonic, "3 100 5000 1600000000.5 1 4 5 0 1 9\n", "3 100 5000 1600000000.5 1 4 5 0 1 9", " ", []spoiled{
		{8, "x", `op_count is "x"; it must be a whole number`},
		{9, "", "9 columns instead of 10 as in the lines above"},
	}},
	{Thesios, "simulated_latency,start_time,filename,file_offset,op_type,request_io_size_bytes\n",
		"0.5,1705305600.25,f1,100,READ,1000", ",", []spoiled{
			{0, "x", `simulated_latency is "x"; it must be a decimal number of seconds`},
			{1, "x", `start_time is "x"; it must be a decimal number of seconds`},
			{2, "", "filename is empty; it must be a name"},
			{3, "x", `file_offset is "x"; it must be a whole number of bytes`},
			{4, "x", `op_type is "x"; it must be READ or WRITE`},
			{5, "x", `request_io_size_bytes is "x"; it must be a whole number of bytes`},
			{5, "1000,5", "7 columns instead of 6 as in the header"},
			{5, strings.Repeat("1,", 27), "33 columns instead of 17"},
		}},
	{MQSim, "", "1000 7 8 16 1", " ", []spoiled{
		{0, "1.5", `time is "1.5"; it must be a whole number of nanoseconds`},
		{1, "x", `device is "x"; it must be a whole number`},
		{2, "x", `first sector is "x"; it must be a whole number of 512-byte sectors`},
		{3, "x", `sectors is "x"; it must be a whole number of 512-byte sectors`},
		{4, "01", `type is "01"; it must be 0 (write) or 1 (read)`},
		{4, "10", `type is "10"; it must be 0 (write) or 1 (read)`},
		{4, "1 2", "6 columns instead of 5"},
	}},
	{DiskSim, "", "0.5 7 8 16 1", " ", []spoiled{
		{0, "-1", `time is "-1"; it must be a decimal number of milliseconds`},
		{1, "x", `device is "x"; it must be a whole number`},
		{2, "x", `block is "x"; it must be a whole number of 512-byte sectors`},
		{3, "x", `blocks is "x"; it must be a whole number of 512-byte sectors`},
		{4, "x", `flags is "x"; it must be a hexadecimal number`},
		{4, "1 2", "6 columns instead of 5"},
	}},
	{Blkparse, "", "8,1 0 1 0.1 42 Q R 64 + 8 [p]", " ", []spoiled{
		{0, "8,x", `device is "8,x"; it must be major,minor`},
		{1, "x", `cpu is "x"; it must be a whole number`},
		{2, "x", `sequence is "x"; it must be a whole number`},
		{3, "x", `time is "x"; it must be a decimal number of seconds`},
		{5, "Qx", `action is "Qx"; it must be an upper-case abbreviation such as Q, D or C`},
		{7, "x", `sector is "x"; it must be a whole number of 512-byte sectors`},
		{9, "0", "a read of 0 bytes; sizes must be positive"},
		{8, "/", `the word after the sector is "/"; it must be +`},
		{8, "++", `the word after the sector is "++"; it must be +`},
		{9, "x", `sectors is "x"; it must be a whole number of 512-byte sectors`},
	}},
	{FioLog, "fio version 3 iolog\n", "20 /dev/sdb read 0 4096", " ", []spoiled{
		{0, "x", `timestamp is "x"; it must be a whole number of microseconds`},
		{2, "open", "action open takes neither offset nor length"},
		{2, "erase", `action is "erase"; it must be add, open, close, read, write, trim, sync, datasync or wait`},
		{3, "x", `offset is "x"; it must be a whole number of bytes`},
		{4, "x", `length is "x"; it must be a whole number of bytes`},
		{4, "", "3 columns instead of a file and an action, or a file, an action, an offset and a length"},
	}},
	{FioLog, "fio version 2 iolog\n", "f wait 150 0", " ", []spoiled{
		{2, "9223372036854", ""},
		{3, "", "3 columns instead of a file and an action, or a file, an action, an offset and a length"},
		{1, "wait\nf wait 1", "action wait needs its microseconds in place of the offset, and a length"},
		{2, "x", `wait is "x"; it must be a whole number of microseconds`},
		{2, "9223372036855", `wait is "9223372036855"`}, // 2^63 ps are 9223372036854.8 us
	}},
	{CSVTable, "t,o,at,n,v,r\n", "1.5,w,8,512,v0,0.25", ",", []spoiled{
		{0, "x", `time is "x"; it must be a decimal number without sign or exponent`},
		{1, "", "op is empty; it must be read, write, trim or flush, or append, reset, finish, open or close of a zone"},
		{1, "rear", `op is "rear"`},
		{2, "x", `offset is "x"; it must be a whole number`},
		{3, "x", `size is "x"; it must be a whole number`},
		{5, "x", `response is "x"; it must be a decimal number, or empty`},
		{5, "9223373", `response is "9223373"; it must be a decimal number, or empty`},
	}},
}

// TestFields spoils one field of a valid line at a time: the error names the line, the field, its text and what it must
// be. A line whose field is left out is refused for its number of columns.
func TestFields(t *testing.T) {
	for _, x := range lines {
		opts := Options{Format: x.format, AsRecorded: true}
		if x.format == CSVTable {
			opts.CSV.Columns = Columns{Time: "t", Op: "o", Offset: "at", Size: "n", Volume: "v", Response: "r"}
		}
		tail := "\n"
		if strings.Contains(x.good, "wait") {
			tail = "\nf read 0 512\n"
		}
		if _, _, err := read(x.before+x.good+tail, opts); err != nil {
			t.Errorf("%s: %v", x.format, err)
		}
		for _, s := range x.spoiled {
			fields := strings.Split(x.good, x.separator)
			fields[s.column] = s.text
			line := strings.Join(fields, x.separator)
			_, _, err := read(x.before+line+tail, opts)
			where := fmt.Sprintf("t:%d: ", strings.Count(x.before, "\n")+1)
			if s.want == "" {
				if err != nil {
					t.Errorf("%s: %s: %v", x.format, line, err)
				}
				continue
			}
			if err == nil || !strings.HasPrefix(err.Error(), where+s.want) {
				t.Errorf("%s: %s: error\n\t%v, want\n\t%s%s", x.format, line, err, where, s.want)
			}
		}
	}
}

// TestHeaders verifies that the lines that name columns are passed over, wherever they stand, and other words are not.
func TestHeaders(t *testing.T) {
	for _, x := range []struct {
		format           Format
		header, line, no string
	}{
		{MSR, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", "128166372003061629,web,3,Read,4096,8192,1331",
			"Time,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"},
		{Systor, "Timestamp,Response,IOType,LUN,Offset,Size", "1456095145.5,0.25,R,3,8192,4096", "T,Response,IOType,LUN,Offset,Size"},
		{Tencent, "Timestamp,Offset,Size,IOType,VolumeID", "1538323200,16,8,1,20", "Time,Offset,Size,IOType,VolumeID"},
		{Alibaba, "device_id,opcode,offset,length,timestamp", "419,W,8192,16384,15", "device,opcode,offset,length,timestamp"},
		{K5cloud, "ID,Timestamp,Type,Offset,Length", "7,0.25,R,1048576,4096", "Id,Timestamp,Type,Offset,Length"},
		{K5cloud, "VolumeID,Timestamp,Type,Offset,Length", "7,0.25,R,1048576,4096", "0x7,Timestamp,Type,Offset,Length"},
		{K5cloud, "VolumeId,Timestamp,Type,Offset,Length", "7,0.25,R,1048576,4096", ",VolumeId,Timestamp,Type,Offset"},
		{Tectonic, "block_id io_offset io_size op_time op_name pipeline user_namespace user_name",
			"3 100 5000 1600000000.5 1 p 4 5", "block io_offset io_size op_time op_name pipeline user_namespace user_name"},
	} {
		text := x.header + "\n" + x.line + "\n" + x.header + "\n" + x.line + "\n"
		if got, _, err := read(text, Options{Format: x.format}); err != nil || len(got) != 2 {
			t.Errorf("%s: %v, %v", x.header, got, err)
		}
		if got, _, err := read(x.no+"\n"+x.line+"\n", Options{Format: x.format}); err == nil {
			t.Errorf("%s: %v", x.no, got)
		}
	}
	// After a header without a column, Thesios' lines have none.
	const head, line = "simulated_latency,start_time,filename,file_offset,op_type,request_io_size_bytes\n",
		"0.5,1705305600.25,f1,100,READ,1000\n"
	got, r, err := read(head+line+"filename,start_time,op_type,file_offset,x,y\n"+line+head+line,
		Options{Format: Thesios, SkipBad: -1})
	if err != nil || len(got) != 2 || r.Skipped() != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
