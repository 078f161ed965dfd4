package trace

import (
	"encoding/binary"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/trace/record"
)

// sample is a short trace of one format and its expected records.
type sample struct {
	format Format
	text   string
	start  int64 // seconds of the absolute start
	want   []workload.Record
	names  []string // of the volumes of want, if they are named
}

const none = workload.NoResponse

func us(n float64) units.Duration { return units.Microseconds(n) }

// vscsiBytes encodes records of either version: sequence number, block, bytes, microseconds, command.
func vscsiBytes(version int, records ...[4]uint64) string {
	var b []byte
	le := binary.LittleEndian
	for i, r := range records {
		block, size, stamp, command := r[0], r[1], r[2], r[3]
		if version == 1 {
			b = le.AppendUint32(b, uint32(i))
			b = le.AppendUint32(b, uint32(size))
			b = le.AppendUint32(b, 1)
			b = le.AppendUint16(b, uint16(command))
			b = le.AppendUint16(b, 0x100)
			b = le.AppendUint64(b, block)
			b = le.AppendUint64(b, stamp)
			continue
		}
		b = le.AppendUint16(b, uint16(command))
		b = le.AppendUint16(b, 0x200)
		b = le.AppendUint32(b, uint32(i))
		b = le.AppendUint32(b, uint32(size))
		b = le.AppendUint32(b, 1)
		b = le.AppendUint64(b, block)
		b = le.AppendUint64(b, stamp)
		b = le.AppendUint64(b, 250)
	}
	return string(b)
}

type blktraceEvent struct {
	time, sector  uint64
	bytes, action uint32
	payload       string
}

func blktraceBytes(order binary.ByteOrder, events ...blktraceEvent) string {
	var b []byte
	for i, e := range events {
		h := make([]byte, blktraceHeader)
		order.PutUint32(h, blktraceMagic|blktraceVersion)
		order.PutUint32(h[4:], uint32(i))
		order.PutUint64(h[8:], e.time)
		order.PutUint64(h[16:], e.sector)
		order.PutUint32(h[24:], e.bytes)
		order.PutUint32(h[28:], e.action)
		order.PutUint32(h[32:], 4242)
		order.PutUint32(h[36:], 8<<20|1)
		order.PutUint16(h[46:], uint16(len(e.payload)))
		b = append(append(b, h...), e.payload...)
	}
	return string(b)
}

var blktraceEvents = []blktraceEvent{
	{0, 0, 0, blktraceNotify, "process"},
	{1000, 64, 4096, blktraceRead | blktraceQueue, ""},
	{1500, 64, 4096, blktraceRead | blktraceIssue, ""},
	{3000, 128, 8192, blktraceWrite | blktraceQueue, "x"},
	{5000, 0, 0, blktraceFlush | blktraceWrite | blktraceQueue, ""},
	{8000, 256, 65536, blktraceDiscard | blktraceWrite | blktraceQueue, ""},
	{81000, 64, 4096, blktraceRead | blktraceComplete, ""},
}

var blktraceWant = []workload.Record{
	{Time: 0, Response: us(80), Offset: 32768, Size: 4096, Volume: 8<<20 | 1, Op: block.Read},
	{Time: us(2), Response: none, Offset: 65536, Size: 8192, Volume: 8<<20 | 1, Op: block.Write},
	{Time: us(4), Response: none, Volume: 8<<20 | 1, Op: block.Flush},
	{Time: us(7), Response: none, Offset: 131072, Size: 65536, Volume: 8<<20 | 1, Op: block.Trim},
}

// samples holds at least one trace of every format, written for these tests.
var samples = []sample{
	{MSR, "128166372003061629,web,0,Read,4096,8192,1331\n128166372016382155,web,1,Write,512,1024,7\n", 1172163600,
		[]workload.Record{
			{Response: us(133.1), Offset: 4096, Size: 8192, Op: block.Read},
			{Time: us(1332052.6), Response: us(0.7), Offset: 512, Size: 1024, Volume: 1, Op: block.Write},
		}, []string{"web,0", "web,1"}},
	{Systor, "Timestamp,Response,IOType,LUN,Offset,Size\r\n1456095145.200000000,0.001,W,3,8192,4096\r\n1456095145.100000000,,R,2,0,512\r\n", 1456095145,
		[]workload.Record{
			{Response: none, Size: 512, Volume: 2, Op: block.Read},
			{Time: us(1e5), Response: us(1000), Offset: 8192, Size: 4096, Volume: 3, Op: block.Write},
		}, []string{"2", "3"}},
	{Alibaba, "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,4096,1577808144360813\n", 1577808144,
		[]workload.Record{
			{Response: none, Offset: 8792731648, Size: 16384, Volume: 419, Op: block.Write},
			{Time: us(46), Response: none, Offset: 59110326272, Size: 4096, Volume: 725, Op: block.Read},
		}, nil},
	{SPC, "0,8,4096,r,0.5\n1,16,512,W,0.750001,extra,fields\n", 0,
		[]workload.Record{
			{Response: none, Offset: 4096, Size: 4096, Op: block.Read},
			{Time: us(250001), Response: none, Offset: 8192, Size: 512, Volume: 1, Op: block.Write},
		}, nil},
	{FIU, "89967404415337 4892 syslogd 904265560 8 W 6 0 531e779ee8ac0ad5b7b8a5b2d8b4d5a1\n89967404425337 12 a name " +
		"8 16 R 8 1 0\n", 89967,
		[]workload.Record{
			{Response: none, Offset: 462983966720, Size: 4096, Volume: 6 << 20, Op: block.Write},
			{Time: us(10), Response: none, Offset: 4096, Size: 8192, Volume: 8<<20 | 1, Op: block.Read},
		}, []string{"6,0", "8,1"}},
	{K5cloud, "ID,Timestamp,Type,Offset,Length\n7,0.25,R,1048576,4096\n7,0.250003,W,2097152,512\n", 0,
		[]workload.Record{
			{Response: none, Offset: 1048576, Size: 4096, Volume: 7, Op: block.Read},
			{Time: us(3), Response: none, Offset: 2097152, Size: 512, Volume: 7, Op: block.Write},
		}, nil},
	{Tectonic, "# a\n# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count " +
		"host_name\n" +
		"3 100 5000 1600000000.5 1 4 5 0 1 9\n4 0 10 1600000001.0 4 4 5 0 2 8\n", 1600000000,
		[]workload.Record{
			{Response: none, Offset: 3<<23 + 100, Size: 5000, Op: block.Read},
			{Time: us(5e5), Response: none, Offset: 4 << 23, Size: 10, Volume: 1, Op: block.Write},
		}, []string{"9", "8"}},
	{Tectonic, "3 100 5000 1600000000.5 2 p 4 5\n4 0 10 1600000001.0 3 p 4 5\n", 1600000000,
		[]workload.Record{
			{Response: none, Offset: 3<<23 + 100, Size: 5000, Op: block.Read},
			{Time: us(5e5), Response: none, Offset: 4 << 23, Size: 10, Op: block.Write},
		}, nil},
	{Tectonic, "3 100 5000 1600000000.5 5 4 5 77 1\n4 0 10 1600000001.0 6 4 5 78 1\n", 1600000000,
		[]workload.Record{
			{Response: none, Offset: 3<<23 + 100, Size: 5000, Op: block.Read},
			{Time: us(5e5), Response: none, Offset: 4 << 23, Size: 10, Volume: 1, Op: block.Write},
		}, []string{"77", "78"}},
	{Thesios, strings.ReplaceAll("filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,request_io_size_bytes,"+
		"disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,simulated_latency\n"+
		"f1,100,app,1,WARM,REPLICATED,READ,OTHER,0,1,1000,0,0,1705305600.25,0,0,0.001\nHEADERf2,0,app,1,COLD,REPLICATED,WRITE,OTHER,0,-1,7,0,0,1705305601.5,0,0,0.5\n",
		"HEADER", ""), 1705305600,
		[]workload.Record{
			{Response: us(1000), Offset: 100, Size: 1000, Op: block.Read},
			{Time: us(1250000), Response: us(5e5), Size: 7, Volume: 1, Op: block.Write},
		}, []string{"f1", "f2"}},
	{VSCSI, vscsiBytes(1, [4]uint64{8, 4096, 5e6, 0x28}, [4]uint64{1, 0, 6e6, 0x12}, [4]uint64{16, 512, 7e6, 0x2a},
		[4]uint64{0, 0, 8e6, 0x35}), 5,
		[]workload.Record{
			{Response: none, Offset: 4096, Size: 4096, Op: block.Read},
			{Time: us(2e6), Response: none, Offset: 8192, Size: 512, Op: block.Write},
			{Time: us(3e6), Response: none, Op: block.Flush},
		}, nil},
	{VSCSI, vscsiBytes(2, [4]uint64{8, 4096, 5e6, 0x88}, [4]uint64{16, 512, 7e6, 0x8a}), 5,
		[]workload.Record{
			{Response: us(250), Offset: 4096, Size: 4096, Op: block.Read},
			{Time: us(2e6), Response: us(250), Offset: 8192, Size: 512, Op: block.Write},
		}, nil},
	{Recorded, record.Header + "\n1764350000.000001000,write,\"a, b\",100,7,0.000002500,10.0.0.1:40\n" + record.Header +
		"\n1764350000.000000000,read,disk,8192,4096,0.000020000,10.0.0.1:40\n1764350001.000000000,flush,disk,0,0,,\n",
		1764350000,
		[]workload.Record{
			{Response: us(20), Offset: 8192, Size: 4096, Volume: 1, Op: block.Read},
			{Time: us(1), Response: us(2.5), Size: 512, Op: block.Write},
			{Time: us(1e6), Response: none, Volume: 1, Op: block.Flush},
		}, []string{"disk", "a, b", "disk"}},
	{MQSim, "1000 0 8 16 1\n3500 2 64 8 0\n", 0,
		[]workload.Record{
			{Response: none, Offset: 4096, Size: 8192, Op: block.Read},
			{Time: us(2.5), Response: none, Offset: 32768, Size: 4096, Volume: 2, Op: block.Write},
		}, nil},
	{DiskSim, "0.5 1 8 16 1\n1.000001\t0 64 8 0\n", 0,
		[]workload.Record{
			{Response: none, Offset: 4096, Size: 8192, Volume: 1, Op: block.Read},
			{Time: us(500.001), Response: none, Offset: 32768, Size: 4096, Op: block.Write},
		}, nil},
	{Blkparse, "  8,1    0        1     0.000001000  42  Q   R 64 + 8 [fio]\n  8,1    0        2     0.000001500  42 " +
		" D   R 64 + 8 [fio]\n" +
		"  8,1    1        3     0.000003000  42  Q  WS 128 + 16 [fio]\n  8,1    1        4     0.000005000  42  Q " +
		"FWS [jbd2/sda1-8]\n" +
		"  8,1    1        5     0.000006000  42  U   N [fio] 1\n  8,1    1        6     0.000008000  42  Q  DS 256 " +
		"+ 128 [fio]\n" +
		"  8,1    0        7     0.000081000   0  C   R 64 + 8 [0]\nCPU0 (8,1):\n Reads Queued:           2,        " +
		"8KiB\n\nTotal (8,1):\n", 0, blktraceWant, []string{"8,1", "8,1", "8,1", "8,1"}},
	{Blktrace, blktraceBytes(binary.LittleEndian, blktraceEvents...), 0, blktraceWant, nil},
	{Blktrace, blktraceBytes(binary.BigEndian, blktraceEvents...), 0, blktraceWant, nil},
	{FioLog, "fio version 3 iolog\n5 /dev/sdb add\n10 /dev/sdb open\n20 /dev/sdb read 0 4096\n25 /dev/sdc trim 8192 " +
		"1024\n30 /dev/sdb sync 0 0\n31 /dev/sdb close\n", 0,
		[]workload.Record{
			{Response: none, Size: 4096, Op: block.Read},
			{Time: us(5), Response: none, Offset: 8192, Size: 1024, Volume: 1, Op: block.Trim},
			{Time: us(10), Response: none, Op: block.Flush},
		}, []string{"/dev/sdb", "/dev/sdc", "/dev/sdb"}},
	{FioLog, "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 150 0\nf write 1 2\nf wait 50 0\nf " +
		"datasync\nf close\n", 0,
		[]workload.Record{
			{Response: none, Size: 4096, Op: block.Read},
			{Time: us(150), Response: none, Offset: 1, Size: 2, Op: block.Write},
			{Time: us(200), Response: none, Op: block.Flush},
		}, nil},
}

const tencentText = "1538323200,16,8,1,20\n1538323199,8,16,0,10\n1538323200,64,128,0,20\n1538323201,1,2,1,30\n"
