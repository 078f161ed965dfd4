package tco

import (
	"fmt"

	"farflash/numeric/units"
)

// Stripe is the cost of a user's write to the members of an array. Full applies to writes of whole stripes, Small to
// the others; Bytes are written per byte, IOs are issued per write. The zero value is a single drive: 1 each.
type Stripe struct {
	FullBytes, SmallBytes float64
	FullIOs, SmallIOs     float64
	// SmallReads is the part of SmallIOs that reads: the old data and parity.
	SmallReads float64
}

func (s Stripe) check(name string) error {
	if s == (Stripe{}) {
		return nil
	}
	if !(s.FullBytes >= 1 && s.SmallBytes >= 1 && s.FullIOs >= 1 && s.SmallIOs >= 1 && s.SmallReads >= 0 &&
		s.SmallReads <= s.SmallIOs) {
		return fmt.Errorf("drive %s: an array writes %v and %v bytes and does %v and %v I/Os for one; none can be "+
			"below 1", name, s.FullBytes, s.SmallBytes, s.FullIOs, s.SmallIOs)
	}
	return nil
}

// Bytes returns the bytes written to the members per byte that a workload writes: lambda's factor in table 1.
func (s Stripe) Bytes(fullStripe float64) float64 {
	if s == (Stripe{}) {
		return 1
	}
	return float64(fullStripe*s.FullBytes) + float64((1-fullStripe)*s.SmallBytes)
}

// Load returns the members' I/Os per second for a workload: equation 6, P (R_w rho + R_r).
func (s Stripe) Load(w *Workload) float64 {
	if s == (Stripe{}) {
		return w.PeakIOPS
	}
	rho := float64(w.FullStripe*s.FullIOs) + float64((1-w.FullStripe)*s.SmallIOs)
	return float64(w.PeakIOPS*w.WriteShare*rho) + float64(w.PeakIOPS*(1-w.WriteShare))
}

// ios splits Load by direction into the members' reads and writes per second. The parity reads of small writes count as
// reads.
func (s Stripe) ios(w *Workload) (reads, writes float64) {
	reads, writes = float64(w.PeakIOPS*(1-w.WriteShare)), float64(w.PeakIOPS*w.WriteShare)
	if s == (Stripe{}) {
		return reads, writes
	}
	rho := float64(w.FullStripe*s.FullIOs) + float64((1-w.FullStripe)*(s.SmallIOs-s.SmallReads))
	return reads + float64(writes*float64((1-w.FullStripe)*s.SmallReads)), float64(writes * rho)
}

// ArrayKind is the redundancy scheme of an array.
type ArrayKind uint8

// The kinds.
const (
	Single      ArrayKind = iota // no array
	RAID0                        // striped
	RAID1                        // two mirrored halves, each striped
	RAID5                        // one parity shard per stripe
	ErasureCode                  // Data and Parity shards per stripe
	Replication                  // Parity+1 copies, striped over the drives
)

var arrayNames = units.Names[ArrayKind]{"single", "raid0", "raid1", "raid5", "ec", "replication"}

// String returns the kind's name in a plan.
func (k ArrayKind) String() string { return arrayNames.Name(k) }

// MarshalText writes the kind's name.
func (k ArrayKind) MarshalText() ([]byte, error) { return arrayNames.Marshal(k) }

// UnmarshalText reads a kind's name.
func (k *ArrayKind) UnmarshalText(text []byte) error { return arrayNames.Unmarshal(text, k) }

// Array is a set of drives of one model behind a redundancy scheme.
type Array struct {
	Kind   ArrayKind
	Drives int // N
	Data   int // k of ErasureCode
	Parity int // m of ErasureCode; copies beyond the first of Replication
}

// String returns a name such as "raid5 of 6".
func (a Array) String() string {
	switch a.Kind {
	case Single:
		return "single"
	case ErasureCode:
		return fmt.Sprintf("ec(%d,%d) of %d", a.Data, a.Parity, a.Drives)
	case Replication:
		return fmt.Sprintf("%d replicas over %d", a.Parity+1, a.Drives)
	}
	return fmt.Sprintf("%v of %d", a.Kind, a.Drives)
}

// Shape returns k and m: any k of k+m shards restore the data.
func (a Array) Shape() (data, parity int) {
	switch a.Kind {
	case RAID0:
		return a.Drives, 0
	case RAID1:
		return 1, 1
	case RAID5:
		return a.Drives - 1, 1
	case ErasureCode:
		return a.Data, a.Parity
	case Replication:
		return 1, a.Parity
	}
	return 1, 0
}

func (a Array) check() error {
	switch {
	case a.Kind != ErasureCode && a.Data != 0:
		return fmt.Errorf("data: %v has no data shards of its own; leave it out, or choose ec", a.Kind)
	case a.Kind != ErasureCode && a.Kind != Replication && a.Parity != 0:
		return fmt.Errorf("parity: the parity of %v is fixed; leave it out, or choose ec or replication", a.Kind)
	case a.Kind == Single && a.Drives > 1:
		return fmt.Errorf("%d drives are not a single drive; choose raid0, raid1, raid5, ec or replication", a.Drives)
	case a.Kind == RAID0 && a.Drives < 1, a.Kind == RAID5 && a.Drives < 3:
		return fmt.Errorf("%v of %d drives; it needs at least %d", a.Kind, a.Drives,
			map[ArrayKind]int{RAID0: 1, RAID5: 3}[a.Kind])
	case a.Kind == RAID1 && (a.Drives < 2 || a.Drives%2 != 0):
		return fmt.Errorf("raid1 of %d drives; two mirrored halves need an even number", a.Drives)
	case a.Kind == ErasureCode && (a.Data < 1 || a.Parity < 0 || a.Data+a.Parity > a.Drives):
		return fmt.Errorf("ec(%d,%d) of %d drives; it needs at least 1 data shard and a drive per shard", a.Data,
			a.Parity, a.Drives)
	case a.Kind == Replication && (a.Parity < 0 || a.Parity+1 > a.Drives):
		return fmt.Errorf("%d replicas over %d drives; each copy needs its own drive", a.Parity+1, a.Drives)
	}
	return nil
}

// Of returns an array of drives like d as one drive, by table 1 and equation 6's rho. A code of k data and m parity
// shards leaves k/(k+m) of the space to users. A full stripe writes (k+m)/k bytes per byte, in as many I/Os; a smaller
// write writes 1+m shards and first reads as many: 2(1+m) I/Os. Replication reads no parity: r bytes and r I/Os in
// either case.
//
// In Paper mode a RAID-5 array writes N/(N-1) bytes and does 4 I/Os regardless of the write's size, as in table 1.
func (a Array) Of(d Drive, mode Mode) (Drive, error) {
	if err := a.check(); err != nil {
		return Drive{}, fmt.Errorf("drive %s: %w", d.Name, err)
	}
	if a.Kind == Single {
		return d, nil
	}
	n := float64(a.Drives)
	d.Buy, d.Run, d.Budget, d.Worn, d.IOPS = float64(d.Buy*n), float64(d.Run*n), float64(d.Budget*n),
		float64(d.Worn*n), float64(d.IOPS*n)
	k, m := a.Shape()
	full := float64(k+m) / float64(k)
	d.Capacity = float64(d.Capacity*n) / full
	switch {
	case a.Kind == RAID0:
		d.Stripe = Stripe{FullBytes: 1, SmallBytes: 1, FullIOs: 1, SmallIOs: 1}
	case a.Kind == RAID1 || a.Kind == Replication:
		r := float64(m + 1)
		d.Stripe = Stripe{FullBytes: r, SmallBytes: r, FullIOs: r, SmallIOs: r}
	case mode == Paper && a.Kind == RAID5:
		d.Stripe = Stripe{FullBytes: full, SmallBytes: full, FullIOs: 4, SmallIOs: 4}
	default:
		small := float64(1 + m)
		d.Stripe = Stripe{FullBytes: full, SmallBytes: small, FullIOs: full, SmallIOs: 2 * small, SmallReads: small}
	}
	return d, nil
}
