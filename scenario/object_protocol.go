package scenario

import (
	"slices"

	"farflash/model/cluster"
	"farflash/model/cluster/tier"
	"farflash/model/cluster/traffic"
	"farflash/numeric/units"
)

// ObjectProtocol is the cluster's protocol: one of package cluster's put protocols, or one of SURGE's models without
// puts, of package tier or traffic.
type ObjectProtocol uint8

// The protocols of package cluster keep their numbers; these follow.
const (
	// Tiering is an SSD and the HDDs behind it.
	Tiering = ObjectProtocol(cluster.SchemeCount)
	// firstTraffic is the first event-exchange model, in the order of package traffic's kinds.
	firstTraffic = Tiering + 1
)

// put returns the put protocol of package cluster, if it is one.
func (p ObjectProtocol) put() (cluster.Scheme, bool) { return cluster.Scheme(p), p < Tiering }

// Traffic returns the pattern of package traffic, if it is one.
func (p ObjectProtocol) Traffic() (traffic.Kind, bool) {
	if p < firstTraffic {
		return 0, false
	}
	return traffic.Kind(p - firstTraffic), true
}

var (
	objectProtocolNames = units.Names[ObjectProtocol](objectProtocols(cluster.Scheme.String, tier.Name,
		traffic.Kind.String))
	objectProtocolNumbers = objectProtocols(cluster.Scheme.Number, tier.Number, traffic.Kind.Number)
)

// objectProtocols returns a string for each protocol.
func objectProtocols(put func(cluster.Scheme) string, tiering string, exchange func(traffic.Kind) string) []string {
	var out []string
	for _, s := range cluster.Schemes() {
		out = append(out, put(s))
	}
	out = append(out, tiering)
	for _, k := range traffic.Kinds() {
		out = append(out, exchange(k))
	}
	return out
}

func (p ObjectProtocol) String() string { return objectProtocolNames.Name(p) }

func (p ObjectProtocol) MarshalText() ([]byte, error) { return objectProtocolNames.Marshal(p) }

// UnmarshalText parses a protocol's name, or SURGE's number for it.
func (p *ObjectProtocol) UnmarshalText(text []byte) error {
	if i := slices.Index(objectProtocolNumbers, string(text)); i >= 0 && len(text) > 0 {
		*p = ObjectProtocol(i)
		return nil
	}
	return objectProtocolNames.Unmarshal(text, p)
}
