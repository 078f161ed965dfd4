package units

// BitRate is a rate in bits per second, the unit for links.
type BitRate int64

// ByteRate is a rate in bytes per second, the unit for drives.
type ByteRate int64

// TransferRate is in transfers per second, each of one width of a parallel bus.
type TransferRate int64

// Common rates.
const (
	BitPerSecond BitRate = 1
	Kbps                 = 1000 * BitPerSecond
	Mbps                 = 1000 * Kbps
	Gbps                 = 1000 * Mbps

	BytePerSecond ByteRate = 1
	KBPerSecond            = 1000 * BytePerSecond
	MBPerSecond            = 1000 * KBPerSecond
	GBPerSecond            = 1000 * MBPerSecond

	TransferPerSecond TransferRate = 1
	MTPerSecond                    = 1000 * 1000 * TransferPerSecond
)

var bitRates = kind{noun: "bit rate", own: "bits per second", try: "Gbps", units: []unit{
	{name: "bps", scale: 1},
	{name: "Kbps", scale: 1e3},
	{name: "Mbps", scale: 1e6},
	{name: "Gbps", scale: 1e9},
	{name: "Tbps", scale: 1e12},
	{name: "kbps", scale: 1e3, alias: true},
	{name: "b/s", scale: 1, alias: true},
	{name: "Kb/s", scale: 1e3, alias: true},
	{name: "Mb/s", scale: 1e6, alias: true},
	{name: "Gb/s", scale: 1e9, alias: true},
	{name: "Tb/s", scale: 1e12, alias: true},
	{name: "bit/s", scale: 1, alias: true},
	{name: "Kbit/s", scale: 1e3, alias: true},
	{name: "kbit/s", scale: 1e3, alias: true},
	{name: "Mbit/s", scale: 1e6, alias: true},
	{name: "Gbit/s", scale: 1e9, alias: true},
	{name: "Tbit/s", scale: 1e12, alias: true},
}}

var byteRates = kind{noun: "byte rate", own: "bytes per second", try: "MB/s", units: []unit{
	{name: "B/s", scale: 1},
	{name: "KB/s", scale: int64(KB)},
	{name: "kB/s", scale: int64(KB), alias: true},
	{name: "KiB/s", scale: int64(KiB)},
	{name: "MB/s", scale: int64(MB)},
	{name: "MiB/s", scale: int64(MiB)},
	{name: "GB/s", scale: int64(GB)},
	{name: "GiB/s", scale: int64(GiB)},
	{name: "TB/s", scale: int64(TB)},
	{name: "TiB/s", scale: int64(TiB)},
}}

var transferRates = kind{noun: "transfer rate", own: "transfers per second", try: "MT/s", units: []unit{
	{name: "T/s", scale: 1},
	{name: "KT/s", scale: 1e3},
	{name: "kT/s", scale: 1e3, alias: true},
	{name: "MT/s", scale: 1e6},
	{name: "GT/s", scale: 1e9},
}}

// ParseBitRate parses a bit rate such as "40Gbps" or "40 Gbit/s".
func ParseBitRate(s string) (BitRate, error) {
	v, err := bitRates.parse(s)
	return BitRate(v), err
}

// ParseByteRate parses a byte rate such as "200MB/s".
func ParseByteRate(s string) (ByteRate, error) {
	v, err := byteRates.parse(s)
	return ByteRate(v), err
}

// ParseTransferRate parses a transfer rate such as "333MT/s".
func ParseTransferRate(s string) (TransferRate, error) {
	v, err := transferRates.parse(s)
	return TransferRate(v), err
}

// String returns the shortest exact form, such as "40Gbps".
func (r BitRate) String() string { return bitRates.format(int64(r)) }

// String returns the shortest exact form, such as "200MB/s".
func (r ByteRate) String() string { return byteRates.format(int64(r)) }

// String returns the shortest exact form, such as "333MT/s".
func (r TransferRate) String() string { return transferRates.format(int64(r)) }

func (r BitRate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r ByteRate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r TransferRate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *BitRate) UnmarshalText(text []byte) error {
	v, err := ParseBitRate(string(text))
	if err == nil {
		*r = v
	}
	return err
}

func (r *ByteRate) UnmarshalText(text []byte) error {
	v, err := ParseByteRate(string(text))
	if err == nil {
		*r = v
	}
	return err
}

func (r *TransferRate) UnmarshalText(text []byte) error {
	v, err := ParseTransferRate(string(text))
	if err == nil {
		*r = v
	}
	return err
}

// TimeFor returns the time for b bytes to the nearest picosecond, halves up. Zero bytes take no time; any at rate zero
// take Forever, and longer times saturate.
func (r ByteRate) TimeFor(b Bytes) Duration {
	if b <= 0 {
		return 0
	}
	if r <= 0 {
		return Forever
	}
	return Duration(scaled(uint64(b), uint64(Second), uint64(r)))
}

// TimeFor returns the time for b bytes of eight bits, as [ByteRate.TimeFor] does.
func (r BitRate) TimeFor(b Bytes) Duration {
	if b <= 0 {
		return 0
	}
	if r <= 0 {
		return Forever
	}
	return Duration(scaled(uint64(b), 8*uint64(Second), uint64(r)))
}

// TimeFor returns the time for n transfers, rounded as [ByteRate.TimeFor] does.
func (r TransferRate) TimeFor(n int64) Duration {
	if n <= 0 {
		return 0
	}
	if r <= 0 {
		return Forever
	}
	return Duration(scaled(uint64(n), uint64(Second), uint64(r)))
}
