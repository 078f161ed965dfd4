package ftl_test

import (
	"encoding/binary"
	"testing"

	"farflash/internal/patience"
	"farflash/policy/ftl"
)

// identity maps every logical page to the physical page of the same number if a scan reports that page valid.
type identity map[ftl.LPA]ftl.PPA

func (m identity) Lookup(lpa ftl.LPA) ftl.PPA {
	if ppa, ok := m[lpa]; ok {
		return ppa
	}
	return ftl.NoPPA
}

func (m identity) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if m[lpa] != old {
		return false
	}
	m[lpa] = new
	return true
}

func (identity) Owner(ppa ftl.PPA) ftl.LPA { return ftl.LPA(ppa) }

// FuzzRestoreBlock restores arbitrary scan results. Whatever is accepted must pass Check.
func FuzzRestoreBlock(f *testing.F) {
	f.Add([]byte{0, 2, 0, 3, 0, 0xff, 1, 1, 1, 0, 5, 0x1f, 2, 3, 0, 0, 0, 0})
	f.Add([]byte{7, 2, 0, 3, 0, 0xf0, 1, 9, 1, 0, 5, 0x3f, 1, 0x81, 0, 7, 7, 7})
	f.Fuzz(func(t *testing.T, scan []byte) {
		defer patience.Limit()()
		cfg := small()
		cfg.StaticWear = 3
		m := identity{}
		d, err := ftl.New(cfg, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(scan) >= 6; scan = scan[6:] {
			b := ftl.Block(int8(scan[0]))
			r := ftl.Restored{
				Use: ftl.Use(scan[1] & 0x7f), Worn: scan[1] >= 0x80, Stream: int(int8(scan[2])),
				Erases:  int(int8(scan[3])),
				Written: int(int8(scan[4])), Valid: []uint64{uint64(scan[5])},
			}
			if d.RestoreBlock(b, r) == nil {
				for page := range 8 {
					if scan[5]>>page&1 == 1 {
						ppa := d.PPA(b, page)
						m[ftl.LPA(ppa)] = ppa
					}
				}
			}
			if err := d.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.ValidPages(); got != int64(len(m)) {
			t.Fatalf("%d pages are valid, not %d", got, len(m))
		}
		d.Next(0)
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzUnmarshalText reads back every accepted name.
func FuzzUnmarshalText(f *testing.F) {
	f.Add([]byte("greedy"))
	f.Add([]byte("rga"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		var v, again ftl.Victim
		if v.UnmarshalText(text) == nil {
			back, _ := v.MarshalText()
			if again.UnmarshalText(back) != nil || again != v {
				t.Errorf("%q is %v, %q is %v", text, v, back, again)
			}
		}
	})
}

// FuzzAddress splits page numbers and reassembles them.
func FuzzAddress(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint64(nil, 123456789), uint16(3), uint16(999), uint16(77))
	f.Fuzz(func(t *testing.T, number []byte, pools, blocks, pages uint16) {
		defer patience.Limit()()
		if len(number) < 8 {
			return
		}
		cfg := ftl.DefaultConfig()
		cfg.Pools, cfg.BlocksPerPool, cfg.PagesPerBlock = int(pools), int(blocks), int(pages)
		d, err := ftl.New(cfg, identity{}, nil)
		if err != nil {
			return
		}
		total := uint64(pools) * uint64(blocks) * uint64(pages)
		n := binary.LittleEndian.Uint64(number) % total
		ppa := ftl.PPA(n)
		if b := d.BlockOf(ppa); uint64(b) != n/uint64(pages) || d.PPA(b, int(n%uint64(pages))) != ppa {
			t.Errorf("page %d of %d pages a block is in block %d", n, pages, b)
		}
		if p := d.PoolOf(ppa); uint64(p) != n/(uint64(blocks)*uint64(pages)) {
			t.Errorf("page %d is in pool %d", n, p)
		}
	})
}
