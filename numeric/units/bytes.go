package units

// Bytes is a size in bytes.
type Bytes int64

// Common sizes: decimal (SI) and binary (IEC).
const (
	Byte Bytes = 1
	KB         = 1000 * Byte
	MB         = 1000 * KB
	GB         = 1000 * MB
	TB         = 1000 * GB
	PB         = 1000 * TB
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
	TiB        = 1024 * GiB
	PiB        = 1024 * TiB

	// Sector is the 512-byte unit of most block traces.
	Sector = 512 * Byte
)

var sizes = kind{noun: "size", own: "bytes", try: "KiB", plain: int64(Sector), units: []unit{
	{name: "B", scale: 1},
	{name: "KB", scale: int64(KB)},
	{name: "kB", scale: int64(KB), alias: true},
	{name: "KiB", scale: int64(KiB)},
	{name: "MB", scale: int64(MB)},
	{name: "MiB", scale: int64(MiB)},
	{name: "GB", scale: int64(GB)},
	{name: "GiB", scale: int64(GiB)},
	{name: "TB", scale: int64(TB)},
	{name: "TiB", scale: int64(TiB)},
	{name: "PB", scale: int64(PB)},
	{name: "PiB", scale: int64(PiB)},
	{name: "EB", scale: int64(1000 * PB)},
	{name: "EiB", scale: int64(1024 * PiB)},
}}

// ParseBytes parses a size such as "16KiB", "44KB" or "512B".
func ParseBytes(s string) (Bytes, error) {
	v, err := sizes.parse(s)
	return Bytes(v), err
}

// String returns the shortest exact form, such as "16KiB". [ParseBytes] parses it to the same value unless it is
// negative.
func (b Bytes) String() string {
	if b == 0 {
		return "0B"
	}
	return sizes.format(int64(b))
}

func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b *Bytes) UnmarshalText(text []byte) error {
	v, err := ParseBytes(string(text))
	if err == nil {
		*b = v
	}
	return err
}
