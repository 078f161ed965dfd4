// Package catalogue holds drives with the figures of their data sheets, and a source for each.
//
// Its main types are Model, a row of such a table, which converts to a tco.Drive; and Estimate, a substitute for a
// figure that a sheet omits. Models returns the built-in drives; Read reads a user's table.
//
// It leaves out current prices, which change within weeks.
package catalogue

import (
	_ "embed" // the catalogue
	"fmt"
	"io"
	"math"
	"strings"

	"farflash/internal/spelling"
	"farflash/planner/tco"
	"farflash/planner/tco/sheet"
	"farflash/policy/ftl/waf"
)

// catalogue is drives with a source for each row.
//
//go:embed catalogue.csv
var catalogue string

// Model is a drive with the figures of its data sheet. Unknown figures are 0.
type Model struct {
	Name     string
	Era      string
	Capacity float64 // GB for users
	Raw      float64 // GB of flash; Alpha derives from it
	DWPD     float64 // drive writes per day over Years
	Years    float64
	TBW      float64 // TB of random host writes; derived from DWPD if not stated
	ReadIOPS float64 // random, 4 KB
	WriteIOPS,
	ActiveW, IdleW float64
	Price      float64
	PriceWhen  string
	AFR        float64 // share per year; 0: that of tco.DefaultMTBF
	Sequential float64 // TBW of sequential writes, where stated
	Source     string
	Note       string
	// Disk is a hard disk: no wear unless it has a rating of its own, no write amplification, no flash.
	Disk bool
	// Free means that the price is known to be 0.
	Free bool
	// RandomWAF is its write amplification under random writes, measured or simulated; 0: the closed form for greedy
	// collection at Alpha.
	RandomWAF float64
}

// columnNames returns the columns of a table of drives. The first two are mandatory.
func columnNames() []string {
	return []string{"model", "capacity_gb", "raw_gb", "dwpd", "years", "tbw_tb", "read_iops", "write_iops",
		"active_w", "idle_w", "price", "price_when", "afr", "sequential_tbw_tb", "random_waf", "media", "era",
		"source", "note"}
}

// ratingSlack is the tolerated disagreement of DWPD, capacity, years and TBW, which data sheets round.
const ratingSlack = 0.05

// Read reads a table of drives. DWPD and TBW must agree if both are stated: TBW = DWPD capacity 365 years. Three of the
// figures in one review's table do not.
func Read(r io.Reader, file string) ([]Model, error) {
	columns := columnNames()
	s, err := sheet.Read(r, file, columns, columns[:2])
	if err != nil {
		return nil, err
	}
	inf := math.Inf(1)
	var list []Model
	names := map[string]int{}
	for i := range s.Rows {
		m := Model{
			Name: s.Text(i, "model"), Era: s.Text(i, "era"), Source: s.Text(i, "source"), Note: s.Text(i, "note"),
			PriceWhen: s.Text(i, "price_when"),
			Capacity:  s.Number(i, "capacity_gb", math.NaN(), sheet.Tiny, inf), Raw: s.Number(i, "raw_gb", 0, 0, inf),
			DWPD:  s.Number(i, "dwpd", 0, 0, inf),
			Years: s.Number(i, "years", 0, 0, 100), TBW: s.Number(i, "tbw_tb", 0, 0, inf),
			ReadIOPS:  s.Number(i, "read_iops", 0, 0, inf),
			WriteIOPS: s.Number(i, "write_iops", 0, 0, inf), ActiveW: s.Number(i, "active_w", 0, 0, inf),
			IdleW: s.Number(i, "idle_w", 0, 0, inf),
			Price: s.Number(i, "price", 0, 0, inf), AFR: s.Number(i, "afr", 0, 0, 1),
			Sequential: s.Number(i, "sequential_tbw_tb", 0, 0, inf), RandomWAF: s.Number(i, "random_waf", 0, 1, inf),
		}
		m.Free = m.Price == 0 && s.Text(i, "price") != ""
		switch media := s.Text(i, "media"); media {
		case "", "flash":
		case "hdd":
			m.Disk = true
			if m.Raw > 0 || m.RandomWAF > 1 {
				s.Fail(i, "media", "a hard disk has neither flash nor write amplification; leave out raw_gb and "+
					"random_waf, or write flash")
			}
		default:
			s.Fail(i, "media", "%q is neither flash nor hdd; write one of the two, or nothing for flash", media)
		}
		if m.Name == "" {
			s.Fail(i, "model", "the drive has no name; give it one")
		} else if other, twice := names[m.Name]; twice {
			s.Fail(i, "model", "%q is already the name of row %d; give each drive its own", m.Name, other)
		}
		names[m.Name] = s.Lines[i]
		if m.Raw > 0 && m.Raw <= m.Capacity {
			s.Fail(i, "raw_gb", "%v GB of flash for %v GB of capacity leave no spare space; it must be more", m.Raw,
				m.Capacity)
		}
		if m.DWPD > 0 && m.Years > 0 {
			implied := m.DWPD * m.Capacity * tco.Year * m.Years / 1000
			if m.TBW == 0 {
				m.TBW = implied
			} else if math.Abs(m.TBW-implied) > ratingSlack*implied {
				s.Fail(i, "dwpd", "%v drive writes a day over %v years are %.5g TB, not the %v TB of tbw_tb; %.3g a "+
					"day, or %.3g years, would agree", m.DWPD, m.Years, implied, m.TBW,
					m.TBW*1000/(m.Capacity*tco.Year*m.Years), m.TBW*1000/(m.Capacity*tco.Year*m.DWPD))
			}
		}
		list = append(list, m)
	}
	if len(s.Rows) == 0 && s.Errs == nil {
		return nil, sheet.TableErrors{{File: file, Row: 2, Msg: "no drives; write one per row"}}
	}
	return list, s.Done()
}

// Models returns the built-in drives with their sources. Prices are as of their date: enterprise drives rose by half
// within one quarter of 2026.
func Models() []Model {
	list, err := Read(strings.NewReader(catalogue), "catalogue.csv")
	if err != nil {
		panic(err) // it is embedded, and tested
	}
	return list
}

// Find returns the model with the given name.
func Find(list []Model, name string) (Model, error) {
	var names []string
	for _, m := range list {
		if strings.EqualFold(m.Name, name) {
			return m, nil
		}
		names = append(names, m.Name)
	}
	hint := ""
	if near := spelling.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return Model{}, fmt.Errorf("no drive %q%s", name, hint)
}

// Alpha is physical over logical space. If the size of the flash is not stated, it is inferred: the smallest power of
// two GiB that holds the capacity, as drives are built: 3.2 TB on 4 TiB.
func (m *Model) Alpha() float64 {
	raw := m.Raw
	if raw == 0 {
		gib := 1.0
		for gib*(1<<30)/1e9 <= m.Capacity {
			gib *= 2
		}
		raw = gib * (1 << 30) / 1e9
	}
	return raw / m.Capacity
}

// flashPages is the number of pages per erase block for closed forms; beyond a hundred it hardly matters.
const flashPages = 256

// Amplification is equation 7 with the model's figures: constant at its random write amplification up to a sequential
// share of 0.45, then falling to 1.
func (m *Model) Amplification() waf.SequentialMix {
	random := m.RandomWAF
	if m.Disk {
		random = 1
	}
	if random == 0 {
		random = waf.GreedyExact(m.Alpha(), flashPages)
	}
	return waf.DefaultSequentialMix(random)
}

// Spared returns the model with a share of its capacity left unused. The flash's write budget does not change and must
// be taken from the original model. A measured write amplification falls in proportion to the closed form.
func (m *Model) Spared(share float64) Model {
	x := *m
	if share == 0 || m.Disk {
		return x
	}
	x.Raw, x.Capacity = m.Alpha()*m.Capacity, m.Capacity*(1-share)
	if m.RandomWAF > 0 {
		x.RandomWAF = max(1, m.RandomWAF*waf.GreedyExact(x.Alpha(), flashPages)/waf.GreedyExact(m.Alpha(), flashPages))
	}
	return x
}

// noWear is the budget in GB of a medium that writes do not wear: 10 GB/s for three million years.
const noWear = 1e15

// budget is W, in GB. Rated TB are random host writes, so the NAND takes A(0) times as much; a rating for sequential
// writes, if stated, gives W directly. In tco.Paper mode the rated host writes are the budget.
func (m *Model) budget(mode tco.Mode, amplification tco.WAF) float64 {
	if m.Disk && m.TBW == 0 {
		return noWear
	}
	if mode == tco.Paper {
		return m.TBW * 1000
	}
	return float64(m.TBW*1000) * amplification.At(0)
}

// IOPS is the drive's rate for a mix with the given share of writes: the times of both add up.
func (m *Model) IOPS(writeShare float64) float64 {
	switch {
	case m.ReadIOPS == 0:
		return m.WriteIOPS
	case m.WriteIOPS == 0:
		return m.ReadIOPS
	}
	return 1 / (writeShare/m.WriteIOPS + (1-writeShare)/m.ReadIOPS)
}

// FailureRate is the model's AFR, or that of tco.DefaultMTBF.
func (m *Model) FailureRate() float64 {
	if m.AFR > 0 {
		return m.AFR
	}
	return tco.AFR(tco.DefaultMTBF)
}

// Drive builds a drive from a model: c_M from its power at a duty, C_I from its price and setup. Reads count against
// the read rating and writes against the write rating; in tco.Paper mode all I/Os count against the rate for a mix with
// the given share of writes.
func (m *Model) Drive(name string, mode tco.Mode, c tco.Costs, duty, writeShare float64) (tco.Drive, error) {
	for _, f := range m.Unknown() {
		if f < ActiveFigure { // unknown power costs nothing
			return tco.Drive{}, fmt.Errorf("the %v of %s is unknown; state it", f, m.Name)
		}
	}
	if err := c.Validate(); err != nil {
		return tco.Drive{}, err
	}
	a := m.Amplification()
	iops, write := m.IOPS(writeShare), 0.0
	if mode == tco.Corrected && m.ReadIOPS > 0 && m.WriteIOPS > 0 {
		iops, write = m.ReadIOPS, m.ReadIOPS/m.WriteIOPS
	}
	return tco.Drive{Name: name, Model: m.Name, Buy: m.Price + c.Setup,
		Run: c.Running(tco.Power{Active: m.ActiveW, Idle: m.IdleW, Duty: duty}), Budget: m.budget(mode, a),
		Capacity: m.Capacity, IOPS: iops, WriteCost: write, WAF: a}, nil
}
