package cc

import "farflash/numeric/units"

// Scheme names an algorithm.
type Scheme uint8

const (
	SchemeNone     Scheme = iota // queue pairs send at line rate
	SchemeDCQCN                  // rate, by marks that receivers report (RoCE NICs)
	SchemeDCTCP                  // rate, by the share of marked packets
	SchemeTimely                 // rate, by the gradient of the round-trip time
	SchemeHPCC                   // rate and window, by telemetry of every hop
	SchemeHPCCPINT               // like hpcc, with telemetry of one or two bytes
	SchemeSwift                  // window, by the delay relative to a target
	SchemeTCP                    // window, by the rules of cubic, newreno or dctcp
	SchemeNSCC                   // window of Ultra Ethernet, by marks and delay
	SchemeNDP                    // receivers pull packets, with trimming
	schemes
)

var schemeNames = units.Names[Scheme]{"none", "dcqcn", "dctcp", "timely", "hpcc", "hpcc-pint", "swift", "tcp", "nscc",
	"ndp"}

func (k Scheme) String() string { return schemeNames.Name(k) }

func (k Scheme) MarshalText() ([]byte, error) { return schemeNames.Marshal(k) }

func (k *Scheme) UnmarshalText(text []byte) error { return schemeNames.Unmarshal(text, k) }

// Config selects an algorithm. Only its settings apply.
type Config struct {
	Algorithm Scheme // Algorithm is the algorithm. The section of its name has its settings.
	// MinRate is the lowest rate of a queue pair; algorithms with a window have a smallest window instead. 100Mbps
	// (MinRate in both ns-3 simulators' code).
	MinRate units.BitRate

	None   LineRate
	DCQCN  DCQCN
	DCTCP  DCTCP
	Timely Timely
	HPCC   HPCC
	PINT   PINT
	Swift  Swift
	TCP    TCP
	NSCC   NSCC
	NDP    NDP
}

// DefaultConfig selects DCQCN with the paper's parameters.
func DefaultConfig() Config {
	return Config{
		Algorithm: SchemeDCQCN, MinRate: 100 * units.Mbps,
		DCQCN: DefaultDCQCN(), DCTCP: defaultDCTCP(), Timely: DefaultTimely(), HPCC: defaultHPCC(),
		PINT: defaultPINT(), Swift: defaultSwift(), TCP: defaultTCP(), NSCC: defaultNSCC(), NDP: defaultNDP(),
	}
}

// Validate reports errors in the settings of the selected algorithm.
func (c Config) Validate() error {
	_, err := New(c, 0)
	return err
}

// New returns the algorithm that c selects. seed is the trial's, for HPCC-PINT.
func New(c Config, seed uint64) (Algorithm, error) {
	switch c.Algorithm {
	case SchemeNone:
		return NewNone(c.None, c.MinRate)
	case SchemeDCQCN:
		return newDCQCN(c.DCQCN, c.MinRate)
	case SchemeDCTCP:
		return newDCTCP(c.DCTCP, c.MinRate)
	case SchemeTimely:
		return newTimely(c.Timely, c.MinRate)
	case SchemeHPCC:
		return newHPCC(c.HPCC, c.MinRate)
	case SchemeHPCCPINT:
		return newPINT(c.PINT, c.MinRate, seed)
	case SchemeSwift:
		return newSwift(c.Swift)
	case SchemeTCP:
		return newTCP(c.TCP)
	case SchemeNSCC:
		return newNSCC(c.NSCC)
	case SchemeNDP:
		return newNDP(c.NDP)
	}
	return nil, units.Wrong("algorithm", "%v is not possible", c.Algorithm)
}
